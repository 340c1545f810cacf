//! Arithmetic of matrices, down to matrices of expressions.

use super::fuel::{Fuel, Judged, Why, different};
use super::{exact, identity};
use crate::answer::{Expr, Function};

/// Larger matrices are not multiplied, and powers are not taken beyond this.
const MAX_SIZE: usize = 12;
const MAX_POWER: i64 = 64;

type Rows = Vec<Vec<Expr>>;

const NO_MATRIX: Why = Why::Undecided("a matrix expression is not understood");

enum Value {
    Scalar(Expr),
    Matrix(Rows),
}

/// Says whether two expressions, at least one with a matrix, are equal.
pub(super) fn same(a: &Expr, b: &Expr, fuel: &mut Fuel) -> Judged {
    match (reduce(a, fuel)?, reduce(b, fuel)?) {
        (Value::Scalar(a), Value::Scalar(b)) => identity::same(&a, &b, fuel),
        (Value::Matrix(a), Value::Matrix(b)) => {
            if a.len() != b.len() || a[0].len() != b[0].len() {
                return different("the matrices have other shapes");
            }
            a.iter().flatten().zip(b.iter().flatten()).try_for_each(|(a, b)| identity::same(a, b, fuel))
        }
        _ => different("one is a matrix"),
    }
}

/// The entries of a row or a column.
pub(super) fn vector(expr: &Expr, fuel: &mut Fuel) -> Option<Vec<Expr>> {
    match reduce(expr, fuel).ok()? {
        Value::Matrix(rows) if rows.len() == 1 => rows.into_iter().next(),
        Value::Matrix(rows) if rows[0].len() == 1 => Some(rows.into_iter().flatten().collect()),
        _ => None,
    }
}

fn reduce(expr: &Expr, fuel: &mut Fuel) -> Judged<Value> {
    fuel.burn(1)?;
    if !identity::has(expr, &|e| matches!(e, Expr::Matrix(_))) {
        return Ok(Value::Scalar(expr.clone()));
    }
    match expr {
        Expr::Matrix(rows) => Ok(Value::Matrix(rows.clone())),
        Expr::Sum(terms) => fold(terms, fuel, add),
        Expr::Product(factors) => fold(factors, fuel, multiply),
        Expr::Power(base, exponent) => power(base, exponent, fuel),
        Expr::Function(Function::Transpose, arguments) => {
            match reduce(arguments.first().ok_or(NO_MATRIX)?, fuel)? {
                Value::Matrix(rows) => Ok(Value::Matrix(transpose(&rows))),
                scalar => Ok(scalar),
            }
        }
        Expr::Function(Function::Determinant | Function::Abs, arguments) => {
            match reduce(arguments.first().ok_or(NO_MATRIX)?, fuel)? {
                Value::Matrix(rows) => Ok(Value::Scalar(determinant(&rows, fuel)?)),
                Value::Scalar(_) => Err(NO_MATRIX),
            }
        }
        _ => Err(NO_MATRIX),
    }
}

fn fold(
    parts: &[Expr],
    fuel: &mut Fuel,
    join: fn(Value, Value, &mut Fuel) -> Judged<Value>,
) -> Judged<Value> {
    let mut parts = parts.iter();
    let mut total = reduce(parts.next().ok_or(NO_MATRIX)?, fuel)?;
    for part in parts {
        let part = reduce(part, fuel)?;
        total = join(total, part, fuel)?;
    }
    Ok(total)
}

fn add(a: Value, b: Value, fuel: &mut Fuel) -> Judged<Value> {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(Expr::Sum(vec![a, b]))),
        (Value::Matrix(a), Value::Matrix(b)) if a.len() == b.len() && a[0].len() == b[0].len() => {
            fuel.burn((a.len() * a[0].len()) as u64)?;
            let mut rows = Vec::with_capacity(a.len());
            for (a, b) in a.into_iter().zip(b) {
                let sums = a.into_iter().zip(b).map(|(a, b)| simple(Expr::Sum(vec![a, b]), fuel));
                rows.push(sums.collect::<Judged<Vec<_>>>()?);
            }
            Ok(Value::Matrix(rows))
        }
        _ => Err(NO_MATRIX),
    }
}

fn multiply(a: Value, b: Value, fuel: &mut Fuel) -> Judged<Value> {
    match (a, b) {
        (Value::Scalar(a), Value::Scalar(b)) => Ok(Value::Scalar(a.times(b))),
        (Value::Scalar(scalar), Value::Matrix(rows)) | (Value::Matrix(rows), Value::Scalar(scalar)) => {
            fuel.burn((rows.len() * rows[0].len()) as u64)?;
            let mut scale = |row: Vec<Expr>| {
                row.into_iter().map(|entry| simple(scalar.clone().times(entry), fuel)).collect()
            };
            Ok(Value::Matrix(rows.into_iter().map(&mut scale).collect::<Judged<Vec<_>>>()?))
        }
        (Value::Matrix(a), Value::Matrix(b)) => {
            let (n, m, k) = (a.len(), b.len(), b[0].len());
            if a[0].len() != m || n.max(m).max(k) > MAX_SIZE {
                return Err(NO_MATRIX);
            }
            fuel.burn((n * m * k) as u64)?;
            let entry = |i: usize, j: usize| {
                Expr::Sum((0..m).map(|l| a[i][l].clone().times(b[l][j].clone())).collect())
            };
            let mut rows = Vec::with_capacity(n);
            for i in 0..n {
                rows.push((0..k).map(|j| simple(entry(i, j), fuel)).collect::<Judged<Vec<_>>>()?);
            }
            Ok(Value::Matrix(rows))
        }
    }
}

fn power(base: &Expr, exponent: &Expr, fuel: &mut Fuel) -> Judged<Value> {
    let exponent = exact::rational(exponent, fuel)?.filter(|e| e.is_int()).ok_or(NO_MATRIX)?;
    let exponent =
        i64::try_from(exponent.numerator()).ok().filter(|e| e.abs() <= MAX_POWER).ok_or(NO_MATRIX)?;
    let base = match reduce(base, fuel)? {
        Value::Matrix(rows) if exponent < 0 => inverse(&rows, fuel)?,
        Value::Matrix(rows) => rows,
        Value::Scalar(base) => return Ok(Value::Scalar(base.power(Expr::integer(exponent)))),
    };
    let mut total = Value::Matrix(base.clone());
    for _ in 1..exponent.abs() {
        total = multiply(total, Value::Matrix(base.clone()), fuel)?;
    }
    if exponent == 0 { Err(NO_MATRIX) } else { Ok(total) }
}

/// Literals are summed at once, so that powers don't grow.
fn simple(expr: Expr, fuel: &mut Fuel) -> Judged<Expr> {
    Ok(match exact::rational(&expr, fuel)? {
        Some(value) => Expr::Number(value),
        None => expr,
    })
}

fn transpose(rows: &Rows) -> Rows {
    (0..rows[0].len()).map(|j| rows.iter().map(|row| row[j].clone()).collect()).collect()
}

/// Without one row and one column.
fn minor(rows: &Rows, row: usize, column: usize) -> Rows {
    let without = |entries: &Vec<Expr>| {
        entries.iter().enumerate().filter(|(j, _)| *j != column).map(|(_, entry)| entry.clone()).collect()
    };
    rows.iter().enumerate().filter(|(i, _)| *i != row).map(|(_, entries)| without(entries)).collect()
}

fn determinant(rows: &Rows, fuel: &mut Fuel) -> Judged<Expr> {
    let n = rows.len();
    if n != rows[0].len() || n > 6 {
        return Err(NO_MATRIX);
    }
    fuel.burn(n as u64)?;
    if n == 1 {
        return Ok(rows[0][0].clone());
    }
    let mut terms = Vec::with_capacity(n);
    for (j, entry) in rows[0].iter().enumerate() {
        let term = entry.clone().times(determinant(&minor(rows, 0, j), fuel)?);
        terms.push(if j % 2 == 0 { term } else { term.negated() });
    }
    simple(Expr::Sum(terms), fuel)
}

/// The inverse by cofactors.
fn inverse(rows: &Rows, fuel: &mut Fuel) -> Judged<Rows> {
    let n = rows.len();
    if n != rows[0].len() || n > 4 {
        return Err(NO_MATRIX);
    }
    let whole = determinant(rows, fuel)?;
    let mut out = Vec::with_capacity(n);
    for i in 0..n {
        let mut row = Vec::with_capacity(n);
        for j in 0..n {
            let cofactor = if n == 1 { Expr::integer(1) } else { determinant(&minor(rows, j, i), fuel)? };
            let signed = if (i + j) % 2 == 0 { cofactor } else { cofactor.negated() };
            row.push(simple(signed.over(whole.clone()).ok_or(NO_MATRIX)?, fuel)?);
        }
        out.push(row);
    }
    Ok(out)
}
