//! How long to wait before a request is sent again, and how long the server wants everybody to wait.

use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use ureq::http::HeaderMap;

/// However long a server asks for, the next try comes after this.
const LONGEST: Duration = Duration::from_secs(600);
/// The longest pause that nobody asked for.
const LONGEST_OWN: Duration = Duration::from_secs(60);
/// How often a pause looks whether to end early.
const TICK: Duration = Duration::from_millis(50);

/// The pause after the `failures`th failure in a row: twice as long each time, less up to a half by chance, so that
/// those who failed together don't come back together.
pub(super) fn backoff(first: Duration, failures: u32, chance: f64) -> Duration {
    let full = first.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_OWN);
    full.mul_f64(1.0 - chance / 2.0)
}

/// The pause that a server asks for: seconds or a date in `Retry-After`, or milliseconds in `Retry-After-Ms`.
pub(super) fn asked_for(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let exact = text("retry-after-ms").and_then(seconds).map(|milliseconds| milliseconds / 1000);
    let pause = exact.or_else(|| {
        let text = text("retry-after")?;
        let date = || Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default());
        seconds(text).or_else(date)
    });
    pause.map(|pause| pause.min(LONGEST))
}

/// Holds back everybody while a server wants to be left alone.
#[derive(Default)]
pub(super) struct Gate(Mutex<Option<Instant>>);

impl Gate {
    /// Closes the gate for a while.
    pub(super) fn close(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut opens = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *opens = (*opens).max(Some(until));
    }

    /// Waits for `pause` and until the gate is open. False where `stop` ended that.
    pub(super) fn wait(&self, pause: Duration, stop: &(dyn Fn() -> bool + Sync)) -> bool {
        let own = Instant::now() + pause;
        loop {
            let opens = *self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            let left = opens.unwrap_or(own).max(own).saturating_duration_since(Instant::now());
            if stop() {
                return false;
            }
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let second = Duration::from_secs(1);
        let pauses = [1, 2, 3, 7, 40].map(|failures| backoff(second, failures, 0.0).as_secs());
        assert_eq!(pauses, [1, 2, 4, 60, 60]);
        assert_eq!(backoff(second, 2, 1.0), second);
    }

    #[test]
    fn a_server_asks_in_seconds_milliseconds_or_by_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (name, value, expected) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(7_000)),
            ("retry-after", "Tue, 06 Nov 1990 08:49:37 GMT", Some(0)),
            ("retry-after", "99999999", Some(600_000)),
            ("retry-after-ms", "20", Some(20)),
            ("retry-after", "soon", None),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            let expected = expected.map(Duration::from_millis);
            assert_eq!(asked_for(&headers, now), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_pause_ends_when_it_is_asked_to() {
        let gate = Gate::default();
        gate.close(Duration::from_secs(3600));
        assert!(!gate.wait(Duration::ZERO, &|| true));
        assert!(Gate::default().wait(Duration::ZERO, &|| false));
    }
}
