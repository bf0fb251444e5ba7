//! Dates for APIs that filter by age.

use std::time::{Duration, SystemTime};

/// Returns the date in UTC so many days ago, such as `2026-11-27`.
///
/// # Examples
///
/// ```
/// assert_eq!(tool_sdk::net::utc_date(1).len(), "2026-11-27".len());
/// ```
#[must_use]
pub fn utc_date(days_ago: u32) -> String {
    const DAY: Duration = Duration::from_hours(24);
    let time = SystemTime::now().checked_sub(DAY * days_ago).unwrap_or(SystemTime::UNIX_EPOCH);
    iso_date(time)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Rearranges the date of HTTP, such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn iso_date(time: SystemTime) -> String {
    let text = httpdate::fmt_http_date(time);
    let words: Vec<&str> = text.split(' ').collect();
    let [_, day, name, year, ..] = words[..] else { return text };
    let month = MONTHS.iter().position(|month| *month == name).unwrap_or_default() + 1;
    format!("{year}-{month:02}-{day}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in
            [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_795_737_600, "2026-11-27")]
        {
            assert_eq!(iso_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), date);
        }
    }
}
