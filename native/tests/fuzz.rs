//! Random and damaged bytes through every parser that needs no Python.
//!
//! A panic is a failure, and so is a result that does not fit its input. `FUZZ_SECONDS` says for how
//! long each test runs; `native/fuzz` runs them longer, with sanitizers where the toolchain has them.

use std::time::{Duration, Instant};

use pocketmq_core::batch::Encoded;
use pocketmq_core::batch_records::{pack_entries, Mould, Packed, Shared};
use pocketmq_core::checksums::first_wrong;
use pocketmq_core::grpc::{Event, Limits, Server};
use pocketmq_core::half::commit;
use pocketmq_core::lane_records::{Burst, Forms, Place, Queue, Run};
use pocketmq_core::md5::{first_word, Words};
use pocketmq_core::plain_send::read_send;
use pocketmq_core::popped::{popped, records};
use pocketmq_core::pulled::plain_record;
use pocketmq_core::received::find_property;
use pocketmq_core::split_properties::split;
use pocketmq_core::tags::{looks_torn, tags_code};
use pocketmq_core::wire::{be32, be64, checksum, java_hash, MAGIC_V1};

/// xorshift64: the same bytes in every run of the same length.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// Properties, with the separators and the name that mean something more often than by chance.
    fn text(&mut self) -> Vec<u8> {
        const PIECES: [&[u8]; 8] = [
            b"TAGS",
            b"\x01",
            b"\x02",
            b"k",
            b"\xff",
            "ä".as_bytes(),
            b"\0",
            b"a",
        ];
        let mut text = Vec::new();
        for _ in 0..self.below(12) {
            text.extend_from_slice(PIECES[self.below(PIECES.len())]);
        }
        text
    }

    /// Change some bytes, and perhaps cut off the end or repeat it.
    fn damage(&mut self, data: &mut Vec<u8>) {
        const ODD: [u8; 8] = [0, 1, 2, 22, 91, 127, 128, 255];
        for _ in 0..self.below(4) {
            let at = self.below(data.len());
            let value = if self.below(2) == 0 {
                self.next() as u8
            } else {
                ODD[self.below(8)]
            };
            if let Some(byte) = data.get_mut(at) {
                *byte = value;
            }
        }
        let at = self.below(data.len() + 1);
        match self.below(6) {
            0 => data.truncate(at),
            1 => data.extend_from_within(at..),
            2 => drop(data.drain(at..(at + self.below(8)).min(data.len()))),
            _ => {}
        }
    }
}

fn repeatedly(mut each: impl FnMut(&mut Random)) {
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs_f64(seconds.unwrap_or(0.5));
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    while Instant::now() < end {
        (0..64).for_each(|_| each(&mut random));
    }
}

fn batch(random: &mut Random) -> Vec<u8> {
    let mut encoded = Encoded::default();
    for step in 0..random.below(6) {
        let (before, after) = (random.text(), random.text());
        let body = random.bytes(200);
        let flag = random.next() as i32;
        let made = encoded.push(&body, flag, (&before, &after), (b"7F000001", step as u16));
        assert!(made.is_some());
    }
    encoded.body
}

/// Pack a batch in some way; return by how much each entry must grow, too.
fn packed(random: &mut Random, body: &[u8], place: i64) -> (Option<Packed>, usize) {
    let host = vec![1; [8, 20][random.below(2)]];
    let topic = vec![b't'; [0, 1, 127, 128, 32_767][random.below(5)]];
    let mould = Mould::new(&Shared {
        topic: &topic,
        queue_id: random.next() as i32,
        sys_flag: random.next() as i32,
        born_timestamp_ms: random.next() as i64,
        born_host: &host,
        store_timestamp_ms: random.next() as i64,
        store_host: &[9; 8],
        reconsume_times: random.next() as i32,
        prepared_transaction_offset: random.next() as i64,
    });
    let length = if topic.len() > 127 { 2 } else { 1 };
    let growth = 60 + host.len() + length + topic.len();
    (pack_entries(body, &mould.unwrap(), place, place), growth)
}

#[test]
fn batches_become_records_or_are_refused() {
    repeatedly(|random| {
        let by_chance = random.below(8) == 0;
        let mut body = if by_chance {
            random.bytes(300)
        } else {
            batch(random)
        };
        let sound = body.clone();
        random.damage(&mut body);
        let place = [0, 1 << 40, i64::MAX][random.below(3)];
        let (found, growth) = packed(random, &body, place);
        if let Some(found) = found {
            let count = found.sizes.len() / 4;
            assert_eq!(
                (found.positions.len(), found.tags.len()),
                (count * 8, count * 8)
            );
            assert_eq!(found.data.len(), body.len() + count * growth);
        } else {
            assert!(
                place == i64::MAX || body != sound || by_chance,
                "refused: {body:?}"
            );
        }
    });
}

#[test]
fn records_are_found_where_they_are() {
    let mould = Mould::new(&Shared {
        topic: b"orders",
        queue_id: 1,
        sys_flag: 0,
        born_timestamp_ms: 1,
        born_host: &[1; 8],
        store_timestamp_ms: 2,
        store_host: &[2; 8],
        reconsume_times: 0,
        prepared_transaction_offset: 0,
    })
    .unwrap();
    repeatedly(|random| {
        let sound = pack_entries(&batch(random), &mould, 7, 1 << 40).unwrap();
        let mut position = 0;
        for offset in 7..7 + sound.sizes.len() as i64 / 4 {
            let record = plain_record(&sound.data, position).unwrap();
            assert_eq!(record.queue_offset, offset);
            assert_eq!(
                be64(&sound.data, position + 28),
                Some((1 << 40) + position as u64)
            );
            position += record.size;
        }
        assert_eq!(position, sound.data.len());
        let mut damaged = sound.data;
        random.damage(&mut damaged);
        let mut position = 0;
        while let Some(record) = plain_record(&damaged, position) {
            assert_eq!(be32(&damaged, position), Some(record.size as u32));
            assert!(record.body.len() < record.size && record.text_at <= position + record.size);
            position += record.size;
            assert!(position <= damaged.len());
        }
        plain_record(&damaged, random.next() as usize);
        plain_record(&damaged, usize::MAX - random.below(100));
    });
}

#[test]
fn popped_records_lie_side_by_side() {
    let header = br#"{"code":0,"extFields":{"popTime":"5","invisibleTime":"6","reviveQid":"0","restNum":"0","startOffsetInfo":"0 3 7","msgOffsetInfo":"0 3 7,8"},"flag":1,"opaque":9}"#;
    repeatedly(|random| {
        let mut data = vec![0; 4];
        data.extend((header.len() as u32).to_be_bytes());
        data.extend(header);
        data.extend(random.bytes(300));
        let size = data.len() as u32 - 4;
        data[..4].copy_from_slice(&size.to_be_bytes());
        let (sound, body) = popped(&data, 9).unwrap();
        assert_eq!(
            (sound.pop_time, sound.queue_id, sound.offsets),
            (5, 3, "7,8")
        );
        assert_eq!(body, &data[8 + header.len()..]);
        records(&sound, body);
        random.damage(&mut data);
        if let Some((found, body)) = popped(&data, 9) {
            let all = records(&found, body).unwrap_or_default();
            let size: usize = all.iter().map(|(_, record, _)| record.size).sum();
            assert!(size == 0 || size == body.len());
        }
    });
}

#[test]
fn a_commit_is_a_record_again() {
    repeatedly(|random| {
        let text = [
            &random.text()[..],
            b"\x02PGROUP\x01g\x02REAL_TOPIC\x01T\x02REAL_QID\x013\x02",
        ];
        let (body, text) = (random.bytes(90), text.concat());
        let mut half = vec![0; 84];
        half.extend((body.len() as u32).to_be_bytes());
        half.extend(&body);
        half.extend(b"\x01H");
        half.extend((text.len() as u16).to_be_bytes());
        half.extend(&text);
        let size = half.len() as u32;
        half[..4].copy_from_slice(&size.to_be_bytes());
        half[4..8].copy_from_slice(&MAGIC_V1.to_be_bytes());
        half[8..12].copy_from_slice(&checksum(&body).to_be_bytes());
        let ending = commit(&half, b"g").unwrap();
        assert_eq!((ending.topic, ending.queue_id), ("T", 3));
        assert_eq!(plain_record(&ending.record, 0).unwrap().body, body);
        random.damage(&mut half);
        if let Some(ending) = commit(&half, b"g") {
            assert!(plain_record(&ending.record, 0).is_some());
        }
    });
}

#[test]
fn properties_are_read_as_they_are_split() {
    repeatedly(|random| {
        let text = random.text();
        let last = text.split(|byte| *byte == 2).rev().find_map(|piece| {
            piece
                .strip_prefix(b"TAGS\x01")
                .filter(|value| !value.is_empty())
        });
        assert_eq!(tags_code(&text), last.map_or(0, java_hash));
        assert_eq!(looks_torn(&text), text.last() == Some(&0));
    });
}

const SEND: &str = concat!(
    r#"{"code":310,"extFields":{"a":"shop","b":"orders","c":"TBW102","d":"8","e":"3","f":"0","#,
    r#""g":"1790000000000","h":"0","i":"UNIQ_KEY\u0001K1\u0002TAGS\u0001paid\u0002","j":"0","#,
    r#""k":"false","l":"16","m":"false"},"flag":0,"language":"JAVA","opaque":77,"#,
    r#""serializeTypeCurrentRPC":"JSON","version":493}"#
);

fn forms() -> Forms {
    Forms {
        stamp: b"CLUSTER\x01c\x02".to_vec(),
        store_host: [9; 8],
        answer: [b"a", b"b", b"c", b"d", b"e", b"f"].map(|text| text.to_vec()),
        delays_ms: vec![1000, 5000, i64::MAX],
        halves: true,
    }
}

fn orders() -> Queue<'static> {
    Queue {
        topic: b"\x06orders",
        flag: 0,
    }
}

/// Begin a burst for one queue, at some place of the log and some offset.
fn begun(random: &mut Random) -> (Burst, Place) {
    let place = Place {
        position: [0, 1 << 40, i64::MAX - 100, -1][random.below(4)],
        end: i64::MAX,
        now_ms: random.next() as i64,
        born_host: [1; 8],
    };
    let mut burst = Burst::default();
    burst.runs.push(Run::new(0, [7, i64::MAX][random.below(2)]));
    (burst, place)
}

#[test]
fn plain_sends_become_records_and_answers_or_are_left() {
    let forms = forms();
    let delayed = SEND.replace(r#""i":""#, r#""i":"DELAY\u00012\u0002"#);
    let half = SEND
        .replace(r#""i":""#, r#""i":"TRAN_MSG\u0001true\u0002"#)
        .replace(r#""f":"0""#, r#""f":"4""#);
    repeatedly(|random| {
        let whole = [SEND, &delayed, &half][random.below(3)].as_bytes();
        let mut header = whole.to_vec();
        random.damage(&mut header);
        let body = random.bytes(200);
        let (mut burst, mut place) = begun(random);
        let begin = place.position;
        let added = read_send(&header).and_then(|send| {
            let queue = orders();
            burst.read(&forms, &send)?;
            burst.add(&forms, 0, queue, &send, &body, &mut place)
        });
        let run = &burst.runs[0];
        if added.is_none() {
            let sound = header == whole && (0..1 << 41).contains(&begin);
            assert!(!sound, "left: {header:?}");
            assert!(burst.records.is_empty() && burst.answers.is_empty());
            assert!(run.positions.is_empty() && place.position == begin);
            return;
        }
        let size = burst.records.len();
        assert_eq!(be32(&burst.records, 0), Some(size as u32));
        assert_eq!(be64(&burst.records, 28), Some(begin as u64));
        assert_eq!(
            (run.size, &run.sizes[..]),
            (size as u64, &[size as u32][..])
        );
        assert_eq!(place.position - begin, size as i64);
        assert!(burst.due_ms == 0 || run.tags == [burst.due_ms]);
        let answer = burst.answers.len();
        assert_eq!(answer > 0, burst.answered + burst.answered_v2 == 1);
        if answer > 0 {
            assert_eq!(be32(&burst.answers, 0), Some(answer as u32 - 4));
            assert_eq!(be32(&burst.answers, 4), Some(answer as u32 - 8));
        }
    });
}

#[test]
fn batches_in_the_lane_become_records_and_one_answer_or_are_left() {
    let forms = forms();
    let whole = SEND
        .replace("310", "320")
        .replace(r#""m":"false""#, r#""m":"true""#);
    repeatedly(|random| {
        let mut header = whole.as_bytes().to_vec();
        if random.below(2) == 0 {
            random.damage(&mut header);
        }
        let mut body = batch(random);
        if random.below(2) == 0 {
            random.damage(&mut body);
        }
        let (mut burst, mut place) = begun(random);
        let begin = place.position;
        let added = read_send(&header).and_then(|send| {
            let queue = orders();
            burst.read(&forms, &send)?;
            burst.add_batch(&forms, 0, queue, &send, &body, &mut place)
        });
        let run = &burst.runs[0];
        let count = run.positions.len();
        assert_eq!((count, count), (run.tags.len(), run.sizes.len()));
        if added.is_none() {
            assert!(burst.records.is_empty() && burst.answers.is_empty());
            assert!(count == 0 && place.position == begin);
            return;
        }
        let sizes: u64 = run.sizes.iter().copied().map(u64::from).sum();
        assert_eq!((sizes, run.size), (burst.records.len() as u64, sizes));
        assert_eq!(place.position - begin, sizes as i64);
        let mut at = begin as u64;
        for (position, size) in run.positions.iter().zip(&run.sizes) {
            assert_eq!(*position, at);
            at += u64::from(*size);
        }
        assert_eq!((burst.answered, burst.answered_v2), (0, 0));
        let answer = burst.answers.len();
        if answer > 0 {
            assert_eq!(be32(&burst.answers, 0), Some(answer as u32 - 4));
            let commas = burst.answers[8..].iter().filter(|byte| **byte == b',');
            assert_eq!(commas.count() + 1, count);
        }
    });
}

#[test]
fn bodies_are_checked_or_left() {
    repeatedly(|random| {
        let data = vec![7u8; random.below(40)];
        let mut columns = [(); 3].map(|()| {
            let numbers = (0..3).map(|_| (random.below(50) as i64 - 3).to_ne_bytes());
            numbers.collect::<Vec<_>>().concat()
        });
        random.damage(&mut columns[0]);
        let [starts, ends, stored] = &columns;
        let found = first_wrong(&data, starts, ends, stored);
        assert!(found.is_none_or(|number| (-1..3).contains(&number)));
    });
}

#[test]
fn properties_are_split_into_values_of_every_row_or_left() {
    repeatedly(|random| {
        let (mut data, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let rows = random.below(5);
        for _ in 0..rows {
            starts.extend((data.len() as i64).to_ne_bytes());
            data.extend(random.text().into_iter().filter(u8::is_ascii));
            ends.extend((data.len() as i64).to_ne_bytes());
        }
        if random.below(4) == 0 {
            random.damage(&mut starts);
            random.damage(&mut data);
        }
        let Some((columns, pairs)) = split(&data, &starts, &ends, &[b"TAGS", b"k"], Some(&[b"k"]))
        else {
            return;
        };
        let rows = starts.len() / 8;
        for column in columns {
            assert_eq!(column.offsets.len(), 4 * (rows + 1));
            assert_eq!(column.present.len(), rows.div_ceil(8));
        }
        let pairs = pairs.expect("pairs were asked for");
        assert_eq!(pairs.firsts.len(), 4 * (rows + 1));
        assert_eq!(pairs.names.offsets.len(), pairs.values.offsets.len());
        assert_eq!(
            pairs.firsts[4 * rows..],
            ((pairs.names.offsets.len() / 4 - 1) as i32).to_ne_bytes()
        );
    });
}

#[test]
fn texts_in_lanes_have_the_words_that_they_have_alone() {
    repeatedly(|random| {
        let (mut words, mut alone) = (Words::default(), Vec::new());
        for _ in 0..random.below(30) {
            let text = vec![random.below(256) as u8; random.below(200)];
            words.add(&text);
            alone.extend(first_word(&text).to_le_bytes());
        }
        assert_eq!(words.finish(), alone);
    });
}

fn http2(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut made = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    made.extend([kind, flags]);
    made.extend(stream.to_be_bytes());
    made.extend(payload);
    made
}

fn grpc_call(stream: u32, body: &[u8]) -> Vec<u8> {
    const FIELDS: [(&str, &str); 5] = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/s/M"),
        ("content-type", "application/grpc"),
        ("grpc-timeout", "5S"),
    ];
    let mut headers = Vec::new();
    for (name, value) in FIELDS {
        headers.extend([0, name.len() as u8]);
        headers.extend(name.bytes());
        headers.push(value.len() as u8);
        headers.extend(value.bytes());
    }
    let mut message = vec![0];
    message.extend((body.len() as u32).to_be_bytes());
    message.extend(body);
    [http2(1, 4, stream, &headers), http2(0, 1, stream, &message)].concat()
}

#[test]
fn a_property_is_found_in_its_text() {
    assert_eq!(find_property(b"k\x01v\x02k\x01w", b"k"), Some(&b"w"[..]));
    repeatedly(|random| {
        let (mut text, name) = (random.text(), random.text());
        random.damage(&mut text);
        if let Some(value) = find_property(&text, &name) {
            assert!(!value.is_empty() && !value.contains(&2));
            assert!(text.windows(value.len()).any(|each| each == value));
        }
    });
}

#[test]
fn a_grpc_connection_bears_any_bytes() {
    const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let sound = [GREETING, &grpc_call(1, b"abc")].concat();
    let mut server = Server::new(&[], GRPC_LIMITS);
    server.put(&sound);
    assert!(matches!(&server.advance()[..], [Event::Called(1, ..)]));
    repeatedly(|random| {
        let mut data = Vec::new();
        for number in 0..random.below(6) as u32 {
            data.extend(grpc_call(2 * number + 1, &random.bytes(300)));
        }
        data.extend(http2(
            random.below(10) as u8,
            random.next() as u8,
            1,
            &random.bytes(9),
        ));
        random.damage(&mut data);
        let mut server = Server::new(&[], GRPC_LIMITS);
        server.put(GREETING);
        for piece in data.chunks(1 + random.below(200)) {
            server.put(piece);
            for event in server.advance() {
                if let Event::Called(stream, ..) = event {
                    server.write(stream, &vec![7; random.below(100_000)]);
                    server.want(stream);
                    server.end(stream, None, 0, "");
                }
            }
            assert!(server.output().0.len() < 400_000);
        }
        server.close();
        server.advance();
    });
}

const GRPC_LIMITS: Limits = Limits {
    streams: 100,
    headers: 16_384,
    message: 100_000,
};
