//! Numbers in sentences.

/// So many of something, as in `1 trial` and `2 trials`; `one` is the word for one of them.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    // A count that is no u64 is at least not one.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// What has to stand beside marks of the pixel judge, with a blank before it; nothing if it is not among these.
pub fn of_pixels<'a>(mut judges: impl Iterator<Item = &'a str>) -> &'static str {
    if judges.any(|it| it.starts_with("pixel/")) {
        " This is the pixel judge: its marks compare with one reference picture, and are not comparable with the paper's nor with a vision model's."
    } else {
        ""
    }
}

/// The word that goes with a number: `one` with 1, and `many` with every other.
pub fn agreeing<'a>(count: impl TryInto<u64>, one: &'a str, many: &'a str) -> &'a str {
    if count.try_into().is_ok_and(|count| count == 1) { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        assert_eq!([0_u64, 1, 2].map(|n| counted(n, "trial")), ["0 trials", "1 trial", "2 trials"]);
        assert_eq!([0_usize, 1, 2].map(|n| agreeing(n, "is", "are")), ["are", "is", "are"]);
    }
}
