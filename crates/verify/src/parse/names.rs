//! Names with a meaning.

use crate::answer::{Constant, Function};

/// A function by its name in LaTeX or plain text.
pub(super) fn function(name: &str) -> Option<Function> {
    Some(match name {
        "sin" => Function::Sin,
        "cos" => Function::Cos,
        "tan" | "tg" => Function::Tan,
        "cot" | "ctg" => Function::Cot,
        "sec" => Function::Sec,
        "csc" | "cosec" => Function::Csc,
        "arcsin" | "asin" => Function::Arcsin,
        "arccos" | "acos" => Function::Arccos,
        "arctan" | "atan" => Function::Arctan,
        "arccot" | "acot" => Function::Arccot,
        "sinh" => Function::Sinh,
        "cosh" => Function::Cosh,
        "tanh" => Function::Tanh,
        "ln" => Function::Ln,
        "log" => Function::LogBare,
        "lg" => Function::Log,
        "exp" => Function::Exp,
        "abs" => Function::Abs,
        "floor" => Function::Floor,
        "ceil" => Function::Ceil,
        "gcd" => Function::Gcd,
        "lcm" => Function::Lcm,
        "min" => Function::Min,
        "max" => Function::Max,
        "Re" => Function::Re,
        "Im" => Function::Im,
        "det" => Function::Determinant,
        _ => return None,
    })
}

/// A constant by its name.
pub(super) fn constant(name: &str) -> Option<Constant> {
    Some(match name {
        "pi" | "Pi" | "PI" => Constant::Pi,
        "e" => Constant::E,
        "i" => Constant::I,
        "infinity" | "Infinity" | "inf" | "infty" | "oo" => Constant::Infinity,
        _ => return None,
    })
}

/// Functions of one argument that take what follows without parentheses.
pub(super) fn is_prefix(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        Sin | Cos
            | Tan
            | Cot
            | Sec
            | Csc
            | Arcsin
            | Arccos
            | Arctan
            | Arccot
            | Sinh
            | Cosh
            | Tanh
            | Ln
            | LogBare
            | Log
            | Exp
    )
}

/// The inverse that the exponent -1 stands for.
pub(super) fn inverse(function: Function) -> Option<Function> {
    Some(match function {
        Function::Sin => Function::Arcsin,
        Function::Cos => Function::Arccos,
        Function::Tan => Function::Arctan,
        Function::Cot => Function::Arccot,
        _ => return None,
    })
}
