//! The MD5 of many short texts: what places members and queues on the ring of CONSISTENT_HASH.
//!
//! Only the hash is here; which texts are hashed, and what follows from it, is Python's.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::python::pure;

const BLOCK: usize = 64;
/// Texts that are hashed together: a step waits for the one before, so others fill the time.
const LANES: usize = 8;
/// Blocks of a text up to which that is done; the names of queues take two.
const FEW: usize = 2;
const START: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
const TURNS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];
#[rustfmt::skip]
const SINES: [u32; 64] = [
    0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613,
    0xfd46_9501, 0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1, 0x895c_d7be, 0x6b90_1122, 0xfd98_7193,
    0xa679_438e, 0x49b4_0821, 0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d,
    0x0244_1453, 0xd8a1_e681, 0xe7d3_fbc8, 0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed,
    0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a, 0xfffa_3942, 0x8771_f681, 0x6d9d_6122,
    0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70, 0x289b_7ec6, 0xeaa1_27fa,
    0xd4ef_3085, 0x0488_1d05, 0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665, 0xf429_2244,
    0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d, 0x8584_5dd1,
    0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb,
    0xeb86_d391,
];

type Block = [u8; BLOCK];

/// Return the states after one block each, for `N` states side by side.
fn compress<const N: usize>(states: [[u32; N]; 4], blocks: &[Block; N]) -> [[u32; N]; 4] {
    let mut words = [[0u32; N]; 16];
    for (lane, block) in blocks.iter().enumerate() {
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            word[lane] = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
    }
    let mut after = states;
    round::<0, N>(&mut after, &words);
    round::<1, N>(&mut after, &words);
    round::<2, N>(&mut after, &words);
    round::<3, N>(&mut after, &words);
    for (new, old) in after.iter_mut().zip(&states) {
        for lane in 0..N {
            new[lane] = new[lane].wrapping_add(old[lane]);
        }
    }
    after
}

/// Carry out one of the four rounds, sixteen steps each.
#[inline(always)]
fn round<const R: usize, const N: usize>(states: &mut [[u32; N]; 4], words: &[[u32; N]; 16]) {
    let [mut a, mut b, mut c, mut d] = *states;
    for step in 0..16 {
        let word = &words[match R {
            0 => step,
            1 => 5 * step + 1,
            2 => 3 * step + 5,
            _ => 7 * step,
        } % 16];
        let (turn, sine) = (TURNS[R][step % 4], SINES[16 * R + step]);
        let mut next = [0u32; N];
        for lane in 0..N {
            let (x, y, z) = (b[lane], c[lane], d[lane]);
            let mixed = match R {
                0 => z ^ (x & (y ^ z)),
                1 => y ^ (z & (x ^ y)),
                2 => x ^ y ^ z,
                _ => y ^ (x | !z),
            };
            let sum = a[lane]
                .wrapping_add(mixed)
                .wrapping_add(sine)
                .wrapping_add(word[lane]);
            next[lane] = x.wrapping_add(sum.rotate_left(turn));
        }
        (a, d, c, b) = (d, c, b, next);
    }
    *states = [a, b, c, d];
}

/// Return the number of blocks that a text takes with its padding.
fn block_count(text: &[u8]) -> usize {
    (text.len() + 8) / BLOCK + 1
}

/// Return one of these blocks.
fn block_of(text: &[u8], number: usize) -> Block {
    let mut block = [0u8; BLOCK];
    let rest = text.get(BLOCK * number..).unwrap_or_default();
    let size = rest.len().min(BLOCK);
    block[..size].copy_from_slice(&rest[..size]);
    if size < BLOCK && BLOCK * number <= text.len() {
        block[size] = 0x80;
    }
    if number + 1 == block_count(text) {
        let bits = (text.len() as u64).wrapping_mul(8);
        block[BLOCK - 8..].copy_from_slice(&bits.to_le_bytes());
    }
    block
}

fn state_of(text: &[u8]) -> [[u32; 1]; 4] {
    let mut state = START.map(|word| [word]);
    for number in 0..block_count(text) {
        state = compress(state, &[block_of(text, number)]);
    }
    state
}

/// Return the first word of the MD5 of a text.
pub fn first_word(text: &[u8]) -> u32 {
    state_of(text)[0][0]
}

/// Return the MD5 of a text.
pub fn digest(text: &[u8]) -> [u8; 16] {
    let mut made = [0; 16];
    for (part, [word]) in made.chunks_exact_mut(4).zip(state_of(text)) {
        part.copy_from_slice(&word.to_le_bytes());
    }
    made
}

/// Hashes texts in their order; those of few blocks wait until there are `LANES` of a size.
pub struct Words {
    done: Vec<u8>,
    waiting: [[Block; LANES]; FEW],
    blocks: usize,
    count: usize,
}

impl Default for Words {
    fn default() -> Self {
        Words {
            done: Vec::new(),
            waiting: [[[0; BLOCK]; LANES]; FEW],
            blocks: 0,
            count: 0,
        }
    }
}

impl Words {
    /// Hash a text.
    pub fn add(&mut self, text: &[u8]) {
        let blocks = block_count(text);
        if blocks != self.blocks || self.count == LANES {
            self.flush();
            self.blocks = blocks;
        }
        if blocks > FEW {
            self.done.extend(first_word(text).to_le_bytes());
            return;
        }
        for number in 0..blocks {
            self.waiting[number][self.count] = block_of(text, number);
        }
        self.count += 1;
    }

    fn flush(&mut self) {
        if self.count > 0 {
            let mut state = START.map(|word| [word; LANES]);
            for blocks in &self.waiting[..self.blocks] {
                state = compress(state, blocks);
            }
            for word in &state[0][..self.count] {
                self.done.extend(word.to_le_bytes());
            }
        }
        self.count = 0;
    }

    /// Return the first four bytes of every MD5, one behind the other.
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.done
    }
}

/// Return the first four bytes of the MD5 of every start with every ending.
#[pyfunction]
pub fn md5_starts<'py>(
    py: Python<'py>,
    starts: &Bound<'py, PyAny>,
    endings: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let (Some(texts), Some(last)) = (all_bytes(starts), all_bytes(endings)) else {
        return pure(py, "md5_starts")?.call1((starts, endings));
    };
    let (mut words, mut text) = (Words::default(), Vec::new());
    for start in &texts {
        for ending in &last {
            text.clear();
            text.extend_from_slice(start.as_bytes());
            text.extend_from_slice(ending.as_bytes());
            words.add(&text);
        }
    }
    Ok(PyBytes::new(py, &words.finish()).into_any())
}

/// Return the items of a list if all of them are bytes.
fn all_bytes<'py>(list: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyBytes>>> {
    let list = list.cast_exact::<PyList>().ok()?;
    list.iter()
        .map(|item| item.cast_into_exact::<PyBytes>().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_standard() {
        for (text, word) in [
            (&b""[..], 0xd41d_8cd9),
            (b"a", 0x0cc1_75b9),
            (b"abc", 0x9001_5098),
            (b"message digest", 0xf96b_697d),
            (
                &[b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'0'].repeat(8),
                0x57ed_f4a2,
            ),
        ] {
            assert_eq!(first_word(text).swap_bytes(), word, "{text:?}");
        }
    }

    #[test]
    fn texts_keep_their_order_in_lanes() {
        let texts: Vec<Vec<u8>> = (0..200).map(|size| vec![b'x'; size]).collect();
        let mut words = Words::default();
        for text in &texts {
            words.add(text);
        }
        let alone: Vec<u8> = texts
            .iter()
            .flat_map(|text| first_word(text).to_le_bytes())
            .collect();
        assert_eq!(words.finish(), alone);
    }
}
