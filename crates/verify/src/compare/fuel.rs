//! A budget of work, so that no comparison takes long whatever it is asked.

/// Why a comparison stopped without the answer "equal".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Different(&'static str),
    Undecided(&'static str),
}

/// Nothing, or why the two are not equal.
pub(crate) type Judged<T = ()> = Result<T, Why>;

pub(crate) fn different<T>(reason: &'static str) -> Judged<T> {
    Err(Why::Different(reason))
}

/// Says whether two are equal, when both answers are of use.
pub(crate) fn holds(judged: Judged) -> Judged<bool> {
    match judged {
        Ok(()) => Ok(true),
        Err(Why::Different(_)) => Ok(false),
        Err(why) => Err(why),
    }
}

/// Equal if one or the other says so.
pub(crate) fn either(first: Judged, second: impl FnOnce() -> Judged) -> Judged {
    match first {
        Ok(()) => Ok(()),
        Err(why) => second().map_err(|other| if let Why::Undecided(_) = other { other } else { why }),
    }
}

use dashu_float::ConstCache;

/// Units of work, about a tenth of a microsecond each, and the constants computed so far.
pub(crate) struct Fuel {
    left: u64,
    constants: Option<ConstCache>,
}

/// What one comparison may cost.
const TANK: u64 = 50_000;

impl Fuel {
    pub(crate) fn new() -> Fuel {
        Fuel { left: TANK, constants: None }
    }

    /// Takes what a step costs.
    pub(crate) fn burn(&mut self, cost: u64) -> Judged {
        self.left = self.left.saturating_sub(cost);
        if self.left == 0 { Err(Why::Undecided("too large: too much work")) } else { Ok(()) }
    }

    /// Runs a part with a share of what is left; what it does not use stays.
    pub(crate) fn share<T>(&mut self, share: u64, part: impl FnOnce(&mut Fuel) -> T) -> T {
        let given = share.min(self.left);
        let mut own = Fuel { left: given, constants: None };
        let result = part(&mut own);
        self.left -= given - own.left;
        result
    }

    /// Where digits of constants are kept.
    pub(crate) fn constants(&mut self) -> &mut ConstCache {
        self.constants.get_or_insert_with(ConstCache::new)
    }
}
