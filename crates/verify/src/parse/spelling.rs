//! What commands and single characters stand for.

pub(super) fn is_layout(name: &str) -> bool {
    matches!(
        name,
        "big"
            | "Big"
            | "bigg"
            | "Bigg"
            | "bigl"
            | "bigr"
            | "Bigl"
            | "Bigr"
            | "biggl"
            | "biggr"
            | "Biggl"
            | "Biggr"
            | "displaystyle"
            | "textstyle"
            | "scriptstyle"
            | "limits"
            | "nolimits"
            | "quad"
            | "qquad"
            | "hfill"
            | "hline"
            | "thinspace"
            | "medspace"
            | "thickspace"
            | "negthinspace"
            | "enspace"
            | "middle"
            | "mathbf"
            | "mathit"
            | "mathsf"
            | "mathcal"
            | "mathtt"
            | "boldsymbol"
            | "bm"
            | "vec"
            | "underline"
            | "displaylimits"
            | "therefore"
            | "boxed"
            | "fbox"
            | "mathstrut"
            | "it"
            | "bold"
            | "widehat"
            | "overrightarrow"
            | "mathop"
            | "large"
            | "Large"
            | "LARGE"
            | "huge"
            | "Huge"
            | "normalsize"
            | "small"
            | "scriptsize"
            | "noindent"
            | "ensuremath"
            | "vphantom"
            | "nobreak"
            | "allowbreak"
            | "break"
            | "newline"
            | "par"
            | "bfseries"
    )
}

pub(super) fn mark_of(name: &str) -> Option<char> {
    Some(match name {
        "le" | "leq" | "leqslant" | "leqq" => '≤',
        "ge" | "geq" | "geqslant" | "geqq" => '≥',
        "ne" | "neq" | "not=" => '≠',
        "lt" => '<',
        "gt" => '>',
        "approx" | "simeq" | "thickapprox" | "cong" | "doteq" => '≈',
        "equiv" => '=',
        "in" => '∈',
        "notin" => '∉',
        "cup" | "bigcup" => '∪',
        "cap" | "bigcap" => '∩',
        "setminus" | "backslash" | "smallsetminus" => '∖',
        "pm" => '±',
        "mp" => '∓',
        "times" | "cdot" | "ast" | "bullet" | "star" => '*',
        "div" => '/',
        "infty" | "infin" => '∞',
        "colon" => ':',
        "lbrace" => '⦃',
        "rbrace" => '⦄',
        "lbrack" => '[',
        "rbrack" => ']',
        "lparen" => '(',
        "rparen" => ')',
        "langle" => '⟨',
        "rangle" => '⟩',
        "lfloor" => '⌊',
        "rfloor" => '⌋',
        "lceil" => '⌈',
        "rceil" => '⌉',
        "vert" | "lvert" | "rvert" | "mid" => '|',
        "degree" => '°',
        "percent" => '%',
        "dollar" => '$',
        "pounds" => '£',
        "euro" => '€',
        "prime" => '\'',
        _ => return None,
    })
}

pub(super) fn synonym(name: &str) -> &str {
    match name {
        "dfrac" | "tfrac" | "cfrac" | "nicefrac" | "sfrac" => "frac",
        "dbinom" | "tbinom" => "binom",
        "ldots" | "cdots" | "dotsc" | "dotsb" | "dotsm" | "vdots" | "ddots" => "dots",
        "varnothing" => "emptyset",
        "varphi" => "phi",
        "varepsilon" => "epsilon",
        "vartheta" => "theta",
        "land" | "wedge" => "land",
        "lor" | "vee" => "lor",
        "bar" => "overline",
        name => name,
    }
}

pub(super) fn greek(c: char) -> Option<&'static str> {
    Some(match c {
        'α' => "alpha",
        'β' => "beta",
        'γ' => "gamma",
        'δ' => "delta",
        'ε' => "epsilon",
        'θ' => "theta",
        'λ' => "lambda",
        'μ' => "mu",
        'π' => "pi",
        'ρ' => "rho",
        'σ' => "sigma",
        'τ' => "tau",
        'φ' | 'ϕ' => "phi",
        'ψ' => "psi",
        'ω' => "omega",
        'Δ' | '△' => "triangle",
        '∠' => "angle",
        _ => return None,
    })
}

pub(super) fn vulgar(c: char) -> Option<(u8, u8)> {
    Some(match c {
        '½' => (1, 2),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅕' => (1, 5),
        '⅖' => (2, 5),
        '⅗' => (3, 5),
        '⅘' => (4, 5),
        '⅙' => (1, 6),
        '⅚' => (5, 6),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        '⅐' => (1, 7),
        '⅑' => (1, 9),
        '⅒' => (1, 10),
        _ => return None,
    })
}
