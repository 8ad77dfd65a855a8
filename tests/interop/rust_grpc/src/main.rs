//! Apache's gRPC client for Rust on a cluster: sends messages of every kind, receives and
//! acknowledges them, and prints a line for each kind; the last line is "end".
//!
//!     official-client ENDPOINT

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::MessageBuilder;
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() {
    let endpoint = std::env::args().nth(1).expect("an endpoint");
    let producer = started(&endpoint).await;

    for number in 0..5 {
        let normal = message("o-normal", &format!("normal {number}"));
        producer.send(normal.build().unwrap()).await.unwrap();
    }
    report("normal", sorted(received(&endpoint, "o-group", "o-normal", 5).await));

    for number in 0..5 {
        let ordered = message("o-fifo", &number.to_string()).set_message_group("customer-7");
        producer.send(ordered.build().unwrap()).await.unwrap();
    }
    report("fifo", received(&endpoint, "o-ordered", "o-fifo", 5).await);

    let due = seconds() + 2;
    let late = message("o-delay", "late").set_delivery_timestamp(due as i64);
    producer.send(late.build().unwrap()).await.unwrap();
    let mut got = received(&endpoint, "o-group", "o-delay", 1).await;
    got.push((seconds() >= due).to_string());
    report("delay", got);

    for word in ["rollback", "commit", "orphan"] {
        let half = message("o-tx", word).enable_transaction().build().unwrap();
        let transaction = producer.send_transaction_message(half).await.unwrap();
        match word {
            "commit" => transaction.commit().await.unwrap(),
            "rollback" => transaction.rollback().await.unwrap(),
            _ => (), // the cluster asks the checker
        }
    }
    report("tx", sorted(received(&endpoint, "o-group", "o-tx", 2).await));
    producer.shutdown().await.unwrap();
    println!("end");
}

fn options(endpoint: &str) -> ClientOption {
    let mut own = ClientOption::default();
    own.set_access_url(endpoint);
    own
}

async fn started(endpoint: &str) -> Producer {
    let mut own = ProducerOption::default();
    own.set_topics(vec!["o-normal", "o-fifo", "o-delay", "o-tx"]);
    // The client asks this what became of a transaction that was neither committed nor rolled back.
    let commits = Box::new(|_, _| TransactionResolution::COMMIT);
    let mut producer =
        Producer::new_transaction_producer(own, options(endpoint), commits).unwrap();
    producer.start().await.unwrap();
    producer
}

fn message(topic: &str, body: &str) -> MessageBuilder {
    MessageBuilder::builder()
        .set_topic(topic)
        .set_body(body.as_bytes().to_vec())
        .set_tag("t")
        .set_keys(vec!["k"])
}

/// Return the bodies of messages, in the order of their arrival, once there are enough.
async fn received(endpoint: &str, group: &str, topic: &str, count: usize) -> Vec<String> {
    let mut own = SimpleConsumerOption::default();
    own.set_topics(vec![topic]);
    own.set_consumer_group(group);
    let mut client = options(endpoint);
    client.set_long_polling_timeout(Duration::from_secs(10));
    let mut consumer = SimpleConsumer::new(own, client).unwrap();
    consumer.start().await.unwrap();
    let all = FilterExpression::new(FilterType::Tag, "*");
    let mut bodies = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while bodies.len() < count && Instant::now() < deadline {
        for view in consumer.receive(topic, &all).await.unwrap() {
            consumer.ack(&view).await.unwrap();
            bodies.push(String::from_utf8(view.body().to_vec()).unwrap());
        }
    }
    consumer.shutdown().await.unwrap();
    bodies
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

fn report(kind: &str, words: Vec<String>) {
    println!("{kind} {}", words.join(", "));
}
