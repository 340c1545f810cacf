//! `strftime_now`: the date, for templates that tell it to the model.

use std::time::{SystemTime, UNIX_EPOCH};

use minijinja::{Error, ErrorKind};

/// The date for templates that tell it to the model, in UTC.
pub(super) fn strftime_now(format: &str) -> Result<String, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    strftime(now, format)
}

fn strftime(seconds: u64, format: &str) -> Result<String, Error> {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    const DAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (month_name, day_name) = (MONTHS[month - 1], DAYS[(days % 7) as usize]);
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        text += &match letters.next() {
            Some('Y') => year.to_string(),
            Some('y') => format!("{:02}", year % 100),
            Some('m') => format!("{month:02}"),
            Some('d') => format!("{day:02}"),
            Some('B') => month_name.into(),
            Some('b') => month_name[..3].into(),
            Some('A') => day_name.into(),
            Some('a') => day_name[..3].into(),
            Some('H') => format!("{:02}", second / 3600),
            Some('I') => format!("{:02}", (second / 3600 + 11) % 12 + 1),
            Some('p') => if second < 43_200 { "AM" } else { "PM" }.into(),
            Some('M') => format!("{:02}", second / 60 % 60),
            Some('S') => format!("{:02}", second % 60),
            Some('%') => "%".into(),
            other => {
                let what = format!("strftime_now: unknown directive %{}", other.unwrap_or(' '));
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
        };
    }
    Ok(text)
}

/// Year, month and day of a day since 1970 (the Gregorian calendar repeats every 146,097 days; a year counted
/// from March has its leap day last, so month lengths follow one line).
fn civil(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let (next_year, month) = if month < 10 { (0, month + 3) } else { (1, month - 9) };
    (era * 400 + year + next_year, month as usize, day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        let at = |seconds| strftime(seconds, "%d %b %Y %A %H:%M:%S").unwrap();
        assert_eq!(at(0), "01 Jan 1970 Thursday 00:00:00");
        assert_eq!(at(951_868_799), "29 Feb 2000 Tuesday 23:59:59");
        assert_eq!(at(951_868_800), "01 Mar 2000 Wednesday 00:00:00");
        assert_eq!(
            strftime(951_868_799, "%m/%d/%y %I %p %B %a %%").unwrap(),
            "02/29/00 11 PM February Tue %"
        );
        assert_eq!(strftime(0, "%I %p").unwrap(), "12 AM");
        assert!(strftime(0, "%q").unwrap_err().to_string().contains("%q"));
    }
}
