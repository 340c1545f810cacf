//! Countdown: combine numbers, each at most once, with `+ - * /` to reach a target.
//!
//! An answer is written as steps, `12+3=15,15*3=45` or `12+3=15;15*3=45`, or as one expression, `(12+3)*3`, perhaps with
//! `=45` behind it. Steps are judged one by one: each operand is a given number or an earlier result,
//! used once; results are non-negative integers and what is stated is true. An expression is judged by
//! its value in exact rationals, so that its verdict doesn't depend on how equal expressions are
//! arranged, which is what [`canonical`] abstracts from. Arithmetic is checked; overflow is a wrong answer.

use std::collections::BTreeMap;

/// Longer answers are wrong; five numbers need far less.
const MAX_BYTES: usize = 512;
/// Deeper parentheses are wrong.
const MAX_DEPTH: usize = 32;

/// The numbers and the target of one problem.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// What may be used, each at most once.
    pub numbers: Vec<u64>,
    /// What is to be reached.
    pub target: u64,
}

impl Task {
    /// Reads `3 7 12 = 45`.
    pub fn parse(problem: &str) -> Option<Task> {
        let (numbers, target) = problem.split_once('=')?;
        let numbers: Vec<u64> = numbers.split_whitespace().map(integer).collect::<Option<_>>()?;
        let target = integer(target.trim())?;
        (!numbers.is_empty()).then_some(Task { numbers, target })
    }
}

/// `str::parse` would also take "+5".
fn integer(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Does the answer reach the target by the rules?
pub fn check(task: &Task, answer: &str) -> bool {
    match Attempt::parse(answer) {
        Some(Attempt::Steps(steps)) => steps_reach(task, &steps),
        Some(Attempt::Expression(expression, stated)) => {
            let target = Some(u128::from(task.target));
            expression.value().and_then(Value::integer) == target
                && stated.is_none_or(|stated| stated == task.target)
                && uses_only(&task.numbers, &expression)
        }
        None => false,
    }
}

fn steps_reach(task: &Task, steps: &[Step]) -> bool {
    let mut available = task.numbers.clone();
    let used = steps.iter().all(|step| {
        let taken = take(&mut available, step.left) && take(&mut available, step.right);
        available.push(step.result);
        taken && step.is_true()
    });
    used && steps.last().is_some_and(|step| step.result == task.target)
}

fn take(available: &mut Vec<u64>, number: u64) -> bool {
    let found = available.iter().position(|&n| n == number);
    found.map(|at| available.swap_remove(at)).is_some()
}

fn uses_only(numbers: &[u64], expression: &Expression) -> bool {
    let mut available = numbers.to_vec();
    expression.leaves().into_iter().all(|leaf| take(&mut available, leaf))
}

/// The normal form of what an answer computes: its steps composed into one expression, chains of `+ -`
/// and of `* /` flattened into signed terms and factors and sorted. Equal solutions, however arranged,
/// have equal forms. `None` for what can't be read and for attempts that state something false.
///
/// Whether it solves a task is [`check`]'s question. An operand that equals an earlier, unused result
/// is taken to be that result.
pub fn canonical(answer: &str) -> Option<String> {
    let expression = match Attempt::parse(answer)? {
        Attempt::Steps(steps) => compose(&steps)?,
        Attempt::Expression(expression, stated) => {
            let value = expression.value()?;
            let stated = stated.map(u128::from);
            (stated.is_none() || stated == value.integer()).then_some(expression)?
        }
    };
    Some(expression.normal().spell(false))
}

/// The last step with earlier results replaced by what they were computed from.
fn compose(steps: &[Step]) -> Option<Expression> {
    let mut results: BTreeMap<u64, Vec<Expression>> = BTreeMap::new();
    let mut last = None;
    for step in steps {
        if !step.is_true() {
            return None;
        }
        if let Some((value, made)) = last.take() {
            results.entry(value).or_default().push(made);
        }
        let mut operand = |n: u64| {
            let earlier = results.get_mut(&n).and_then(Vec::pop);
            Box::new(earlier.unwrap_or(Expression::Number(n)))
        };
        let (left, right) = (operand(step.left), operand(step.right));
        last = Some((step.result, Expression::Apply(step.operator, left, right)));
    }
    last.map(|(_, expression)| expression)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    fn read(c: char) -> Option<Operator> {
        Some(match c {
            '+' => Operator::Add,
            '-' | '−' => Operator::Subtract,
            '*' | '×' | '·' => Operator::Multiply,
            '/' | '÷' => Operator::Divide,
            _ => return None,
        })
    }

    fn is_product(self) -> bool {
        matches!(self, Operator::Multiply | Operator::Divide)
    }

    fn is_inverse(self) -> bool {
        matches!(self, Operator::Subtract | Operator::Divide)
    }
}

#[derive(Debug)]
struct Step {
    left: u64,
    operator: Operator,
    right: u64,
    result: u64,
}

impl Step {
    /// True arithmetic, within the non-negative integers.
    fn is_true(&self) -> bool {
        let result = match self.operator {
            Operator::Add => self.left.checked_add(self.right),
            Operator::Subtract => self.left.checked_sub(self.right),
            Operator::Multiply => self.left.checked_mul(self.right),
            Operator::Divide => {
                let exact = self.left.checked_rem(self.right) == Some(0);
                exact.then(|| self.left / self.right)
            }
        };
        result == Some(self.result)
    }
}

#[derive(Clone, Debug)]
enum Expression {
    Number(u64),
    Apply(Operator, Box<Expression>, Box<Expression>),
}

enum Attempt {
    Steps(Vec<Step>),
    /// With the result stated behind it, if any.
    Expression(Expression, Option<u64>),
}

impl Attempt {
    fn parse(answer: &str) -> Option<Attempt> {
        let answer = answer.trim();
        if answer.len() > MAX_BYTES {
            return None;
        }
        let steps = answer.split([',', ';']).map(step).collect::<Option<Vec<_>>>();
        if let Some(steps) = steps {
            return Some(Attempt::Steps(steps));
        }
        let (text, stated) = match answer.split_once('=') {
            Some((text, stated)) => (text, Some(integer(stated.trim())?)),
            None => (answer, None),
        };
        Some(Attempt::Expression(expression(text)?, stated))
    }
}

/// One step, `a+b=c`.
fn step(text: &str) -> Option<Step> {
    let (computed, result) = text.split_once('=')?;
    let result = integer(result.trim())?;
    match expression(computed)? {
        Expression::Apply(operator, left, right) => match (*left, *right) {
            (Expression::Number(left), Expression::Number(right)) => {
                Some(Step { left, operator, right, result })
            }
            _ => None,
        },
        Expression::Number(_) => None,
    }
}

fn expression(text: &str) -> Option<Expression> {
    let mut chars: Vec<char> = Vec::with_capacity(text.len());
    let mut after_space = false;
    for c in text.chars() {
        // "1 2" is not 12.
        if after_space && c.is_ascii_digit() && chars.last().is_some_and(char::is_ascii_digit) {
            return None;
        }
        after_space = c.is_whitespace();
        if !after_space {
            chars.push(c);
        }
    }
    let mut parser = Parser { chars: &chars, at: 0 };
    let expression = parser.sum(0)?;
    (parser.at == chars.len()).then_some(expression)
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
}

impl Parser<'_> {
    fn sum(&mut self, depth: usize) -> Option<Expression> {
        self.chain(false, depth)
    }

    /// A left-associative chain of one kind: sums of products of atoms.
    fn chain(&mut self, products: bool, depth: usize) -> Option<Expression> {
        let mut left = self.operand(products, depth)?;
        while let Some(operator) = self.peek().and_then(Operator::read) {
            if operator.is_product() != products {
                break;
            }
            self.at += 1;
            let right = self.operand(products, depth)?;
            left = Expression::Apply(operator, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn operand(&mut self, in_product: bool, depth: usize) -> Option<Expression> {
        if in_product { self.atom(depth) } else { self.chain(true, depth) }
    }

    fn atom(&mut self, depth: usize) -> Option<Expression> {
        if self.peek()? == '(' {
            if depth == MAX_DEPTH {
                return None;
            }
            self.at += 1;
            let inner = self.sum(depth + 1)?;
            (self.peek()? == ')').then(|| self.at += 1)?;
            return Some(inner);
        }
        let rest = &self.chars[self.at..];
        let digits: String = rest.iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        digits.parse().ok().map(Expression::Number)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }
}

/// An exact rational; the denominator is positive.
#[derive(Clone, Copy)]
struct Value(i128, i128);

impl Value {
    fn new(top: i128, bottom: i128) -> Option<Value> {
        let divisor = gcd(top.checked_abs()?, bottom.checked_abs()?);
        let sign = bottom.signum();
        (bottom != 0).then(|| Value(sign * (top / divisor), sign * (bottom / divisor)))
    }

    fn integer(self) -> Option<u128> {
        (self.1 == 1).then(|| u128::try_from(self.0).ok())?
    }

    fn apply(self, operator: Operator, other: Value) -> Option<Value> {
        let (a, b, c, d) = (self.0, self.1, other.0, other.1);
        let (left, right) = (a.checked_mul(d)?, c.checked_mul(b)?);
        match operator {
            Operator::Add => Value::new(left.checked_add(right)?, b.checked_mul(d)?),
            Operator::Subtract => Value::new(left.checked_sub(right)?, b.checked_mul(d)?),
            Operator::Multiply => Value::new(a.checked_mul(c)?, b.checked_mul(d)?),
            Operator::Divide => Value::new(left, right),
        }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Expression {
    fn value(&self) -> Option<Value> {
        match self {
            Expression::Number(n) => Some(Value(i128::from(*n), 1)),
            Expression::Apply(operator, left, right) => left.value()?.apply(*operator, right.value()?),
        }
    }

    fn leaves(&self) -> Vec<u64> {
        match self {
            Expression::Number(n) => vec![*n],
            Expression::Apply(_, left, right) => [left.leaves(), right.leaves()].concat(),
        }
    }

    fn normal(&self) -> Normal {
        match self {
            Expression::Number(n) => Normal::Number(*n),
            Expression::Apply(operator, left, right) => {
                let product = operator.is_product();
                let mut parts = left.normal().parts(product);
                let right = right.normal().parts(product);
                parts.extend(
                    right.into_iter().map(|(inverse, part)| (inverse != operator.is_inverse(), part)),
                );
                parts.sort();
                Normal::Chain { product, parts }
            }
        }
    }
}

/// A chain's parts carry whether they are subtracted or divided by. Sorted: these come last, so the
/// first part never is one (the leftmost number of a chain is not).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Normal {
    Number(u64),
    Chain { product: bool, parts: Vec<(bool, Normal)> },
}

impl Normal {
    /// As parts of a chain of the given kind.
    fn parts(self, of_product: bool) -> Vec<(bool, Normal)> {
        match self {
            Normal::Chain { product, parts } if product == of_product => parts,
            other => vec![(false, other)],
        }
    }

    fn spell(&self, in_product: bool) -> String {
        let Normal::Chain { product, parts } = self else {
            let Normal::Number(n) = self else { return String::new() };
            return n.to_string();
        };
        let (plain, inverse) = if *product { ("*", "/") } else { ("+", "-") };
        let mut text = String::new();
        for (i, (inverted, part)) in parts.iter().enumerate() {
            if i > 0 {
                text.push_str(if *inverted { inverse } else { plain });
            }
            text.push_str(&part.spell(*product));
        }
        if in_product && !product { format!("({text})") } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task() -> Task {
        Task::parse("3 7 12 = 45").unwrap()
    }

    #[test]
    fn problems() {
        assert_eq!(task(), Task { numbers: vec![3, 7, 12], target: 45 });
        for bad in ["", "3 7", "= 45", "3 x = 45", "3 7 =", "3 +7 = 4", "3 7 = 99999999999999999999"] {
            assert_eq!(Task::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn right_answers() {
        let task = Task::parse("3 5 12 45 = 45").unwrap();
        for answer in [
            "12*5=60,45/3=15,60-15=45",
            "12 * 5 = 60, 45 / 3 = 15, 60 - 15 = 45",
            "12*5-45/3",
            " 5 × 12 − (45 ÷ 3) = 45 ",
            "45",
            "45=45",
        ] {
            assert!(check(&task, answer), "{answer}");
        }
        let twice = "12+3=15,15*3=45";
        assert!(!check(&task, twice), "3 is there once");
        assert!(check(&Task::parse("3 3 12 = 45").unwrap(), twice));
    }

    #[test]
    fn expressions_are_judged_by_value() {
        let task = Task::parse("3 7 14 = 6").unwrap();
        for answer in ["3/7*14", "3*14/7", "14/(7/3)", "3*14=42,42/7=6", "14/7=2,2*3=6"] {
            assert!(check(&task, answer), "{answer}");
        }
        assert!(!check(&task, "3/7=0,0*14=6"));
    }

    #[test]
    fn wrong_answers() {
        for answer in [
            "",
            "none",
            "45",
            "12+3=15",
            "12+3=16",
            "7*12=84,84-39=45",
            "12*3=36,36+7=43",
            "(12+3",
            "12+",
            "+3",
            "12/0",
            "7-12=5",
            "12/7=1",
            "12+3=15,15*3=45 ok",
            "3**12",
            "1 2",
            "=45",
            "12+3=",
            ",",
            "12+3=15,",
            "99999999999999999999",
            "12+3=15=15",
        ] {
            assert!(!check(&task(), answer), "{answer}");
        }
    }

    #[test]
    fn overflow_is_wrong() {
        let big = u64::MAX;
        let task = Task { numbers: vec![big; 8], target: 0 };
        assert!(!check(&task, &format!("{big}*{big}=0")));
        assert!(!check(&task, &format!("{big}*{big}*{big}*{big}-{big}")));
        assert!(check(&task, &format!("{big}-{big}")));
    }

    #[test]
    fn normal_forms() {
        for (answer, expected) in [
            ("45", "45"),
            ("12+3=15,15*3=45", "3*(3+12)"),
            ("12+3=15; 15*3=45", "3*(3+12)"),
            ("3*(3+12)", "3*(3+12)"),
            ("(12+3)*3=45", "3*(3+12)"),
            ("7-2+3", "3+7-2"),
            ("3-(2-7)", "3+7-2"),
            ("8/2*3", "3*8/2"),
            ("8/(2/3)", "3*8/2"),
            ("1-(2-3*4)", "1+3*4-2"),
            ("2+2=4,4*4=16", "4*(2+2)"),
        ] {
            assert_eq!(canonical(answer).as_deref(), Some(expected), "{answer}");
        }
        for answer in ["12+3=16,16*3=48", "12+3=16", "none", "", "1/0", "(1+2)*3=8"] {
            assert_eq!(canonical(answer), None, "{answer}");
        }
        assert_ne!(canonical("8-2-3"), canonical("8-(2-3)"));
    }

    /// A random tree over distinct numbers, as an expression and mirrored at random nodes.
    #[derive(Clone, Debug)]
    enum Tree {
        Leaf(u64),
        Node(usize, bool, Box<Tree>, Box<Tree>),
    }

    fn trees() -> impl Strategy<Value = Tree> {
        (1u64..30).prop_map(Tree::Leaf).prop_recursive(4, 8, 2, |inner| {
            (0usize..4, any::<bool>(), inner.clone(), inner)
                .prop_map(|(op, flip, a, b)| Tree::Node(op, flip, Box::new(a), Box::new(b)))
        })
    }

    impl Tree {
        fn spell(&self, mirror: bool) -> String {
            match self {
                Tree::Leaf(n) => n.to_string(),
                Tree::Node(op, flip, a, b) => {
                    let (a, b) = (a.spell(mirror), b.spell(mirror));
                    let swap = mirror && *flip && op % 2 == 0;
                    let (a, b) = if swap { (b, a) } else { (a, b) };
                    format!("({a}{}{b})", ["+", "-", "*", "/"][*op])
                }
            }
        }

        /// Writes the steps; `None` where one leaves the non-negative integers.
        fn steps(&self, out: &mut Vec<String>, results: &mut Vec<u64>) -> Option<u64> {
            let Tree::Node(op, _, a, b) = self else {
                let Tree::Leaf(n) = self else { return None };
                return Some(*n);
            };
            let (a, b) = (a.steps(out, results)?, b.steps(out, results)?);
            let c = match op {
                0 => a + b,
                1 => a.checked_sub(b)?,
                2 => a.checked_mul(b)?,
                _ => (a.checked_rem(b)? == 0).then(|| a / b)?,
            };
            out.push(format!("{a}{}{b}={c}", ["+", "-", "*", "/"][*op]));
            results.push(c);
            Some(c)
        }

        fn leaves(&self) -> Vec<u64> {
            match self {
                Tree::Leaf(n) => vec![*n],
                Tree::Node(_, _, a, b) => [a.leaves(), b.leaves()].concat(),
            }
        }
    }

    proptest! {
        #[test]
        fn mirrored_operands_have_one_form(tree in trees()) {
            prop_assert_eq!(canonical(&tree.spell(false)), canonical(&tree.spell(true)));
        }

        #[test]
        fn the_form_is_a_fixed_point_and_keeps_the_verdict(tree in trees()) {
            let text = tree.spell(false);
            if let Some(form) = canonical(&text) {
                prop_assert_eq!(Some(form.clone()), canonical(&form));
                for target in [1, 6, 24] {
                    let task = Task { numbers: tree.leaves(), target };
                    prop_assert_eq!(check(&task, &text), check(&task, &form));
                }
            }
        }

        #[test]
        fn steps_and_expression_agree(tree in trees()) {
            let (mut steps, mut results) = (Vec::new(), Vec::new());
            if let Some(target) = tree.steps(&mut steps, &mut results) && !steps.is_empty() {
                let task = Task { numbers: tree.leaves(), target };
                let steps = steps.join(",");
                prop_assert!(check(&task, &steps), "{}", steps);
                prop_assert!(check(&task, &tree.spell(false)));
                let missed = Task { target: target + 1, ..task.clone() };
                prop_assert!(!check(&missed, &steps));
                // An operand equal to a result or to another result could be either.
                let leaves = tree.leaves();
                let mut unique = results.clone();
                unique.sort_unstable();
                unique.dedup();
                if unique.len() == results.len() && !results.iter().any(|r| leaves.contains(r)) {
                    prop_assert_eq!(canonical(&steps), canonical(&tree.spell(true)));
                }
            }
        }

        #[test]
        fn never_panics(text in "[-+*/()=,0-9 ×−a]{0,60}") {
            check(&Task { numbers: vec![1, 2, u64::MAX], target: 3 }, &text);
            canonical(&text);
            Task::parse(&text);
        }
    }
}
