//! Matrices.

use super::Fault;
use super::cursor::{Cursor, step};
use super::expr::{inside, split};
use super::token::Kind;
use crate::answer::{Expr, Function};

pub(super) fn matrix(cursor: &mut Cursor<'_, '_>, name: &str) -> Result<Expr, Fault> {
    let shape = name.trim_end_matches('*');
    if !matches!(shape, "matrix" | "pmatrix" | "bmatrix" | "Bmatrix" | "vmatrix" | "smallmatrix" | "array") {
        return Err(Fault::Unexpected);
    }
    let inner = cursor.group().ok_or(Fault::Unexpected)?;
    let mut depth = 0;
    let mut rows = Vec::new();
    for row in inner.split(|token| {
        depth += step(token.kind);
        depth == 0 && token.kind == Kind::Row
    }) {
        if row.is_empty() {
            continue; // a final `\\`
        }
        let entries =
            split(row, '&').into_iter().map(|entry| inside(cursor, entry)).collect::<Result<Vec<_>, _>>()?;
        rows.push(entries);
    }
    let width = rows.first().map_or(0, Vec::len);
    if width == 0 || rows.iter().any(|row| row.len() != width) {
        return Err(Fault::Unexpected);
    }
    let matrix = Expr::Matrix(rows);
    let transposed = transpose(cursor);
    let matrix = if transposed { Expr::Function(Function::Transpose, vec![matrix]) } else { matrix };
    Ok(if shape == "vmatrix" { Expr::Function(Function::Determinant, vec![matrix]) } else { matrix })
}

/// `^T`, `^{\top}`.
fn transpose(cursor: &mut Cursor<'_, '_>) -> bool {
    let mut ahead = cursor.clone();
    let is_t = |kind| matches!(kind, Kind::Word("T") | Kind::Command("top" | "intercal"));
    let found = ahead.eat('^')
        && if ahead.is('{') {
            matches!(ahead.group(), Some([token]) if is_t(token.kind))
        } else {
            let found = ahead.peek().is_some_and(is_t);
            ahead.next();
            found
        };
    if found {
        *cursor = ahead;
    }
    found
}
