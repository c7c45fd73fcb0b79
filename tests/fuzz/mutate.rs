//! Mutations that chance alone would seldom find: they know of lines, of JSON, and of what files suffer in the wild.

/// Steele, Lea and Flood's generator: the same seed gives the same input everywhere.
#[derive(Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 if there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or(0) % bound.max(1)
    }

    pub(crate) fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// What stands in other places than it should.
const SCRAPS: [&str; 40] = [
    "\0",
    "\u{feff}",
    "\r\n",
    "\n\n",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\"\"",
    "{}",
    "[]",
    "{\"type\":",
    "[[[[[[[[",
    "\"timestamp\":\"2026-02-30T25:61:61.000Z\",",
    "é",
    "🖋",
    "$(",
    "`",
    "<<E\n",
    "'",
    "\nE\n",
    "((",
    "\u{1b}[2J",
    "..",
    "/../../etc",
    "\t",
    " ",
    "for i in range(9**9):\n",
    "f\"{x!r:{y}}\"",
];

/// `bytes` after one to eight mutations; `other` is a seed to take parts from.
pub(crate) fn mutated(bytes: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=dice.below(8) {
        mutate(&mut bytes, other, dice);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = dice.below(bytes.len() + 1);
    let most = *dice.pick(&[1_usize, 4, 60, 2_000]);
    let end = (at + dice.below(1 + most)).min(bytes.len());
    match dice.below(12) {
        0 => drop(bytes.drain(at..end)),
        1 => drop(bytes.splice(at..at, dice.pick(&SCRAPS).bytes())),
        2 => drop(bytes.splice(at..end, dice.pick(&SCRAPS).bytes())),
        3 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        // Torn where a process was killed.
        4 => bytes.truncate(at),
        5 => {
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        6 => drop(bytes.splice(at..at, part(other, dice))),
        7 => {
            let scrap = dice.pick(&SCRAPS).repeat(1 + dice.below(3_000));
            bytes.splice(at..at, scrap.into_bytes());
        }
        _ => lines(bytes, other, dice),
    }
}

/// Mutations of whole lines: left out, twice, elsewhere, from another file, with a value of another kind.
fn lines(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (at, to) = (dice.below(lines.len()), dice.below(lines.len()));
    match dice.below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(to, lines[at].clone()),
        2 => lines.swap(at, to),
        3 => {
            let strange: Vec<&[u8]> = other.split_inclusive(|it| *it == b'\n').collect();
            if !strange.is_empty() {
                lines.insert(at, dice.pick(&strange).to_vec());
            }
        }
        4 => lines[at] = b"\r\n".to_vec(),
        _ => {
            if let Ok(mut value) = serde_json::from_slice(&lines[at]) {
                change(&mut value, dice);
                lines[at] = format!("{value}\n").into_bytes();
            }
        }
    }
    *bytes = lines.concat();
}

/// Puts a value of any kind somewhere in `value`.
fn change(value: &mut serde_json::Value, dice: &mut Dice) {
    use serde_json::{Value, json};
    match value {
        Value::Object(map) if !map.is_empty() && dice.below(8) > 0 => {
            let at = dice.below(map.len());
            if let Some(inner) = map.values_mut().nth(at) {
                change(inner, dice);
            }
        }
        Value::Array(list) if !list.is_empty() && dice.below(8) > 0 => {
            let at = dice.below(list.len());
            change(&mut list[at], dice);
        }
        _ => {
            *value = match dice.below(8) {
                0 => Value::Null,
                1 => json!(i64::MIN),
                2 => json!(u64::MAX),
                3 => json!("\u{0}\u{1b}\\ud800"),
                4 => json!([[], {}, "x", null]),
                5 => json!({"type": {"type": []}, "content": [[]], "id": 7}),
                6 => json!(1e308),
                _ => json!(true),
            }
        }
    }
}

/// Some bytes of a file.
fn part(bytes: &[u8], dice: &mut Dice) -> Vec<u8> {
    let at = dice.below(bytes.len() + 1);
    let end = (at + dice.below(4_000)).min(bytes.len());
    bytes[at..end].to_vec()
}
