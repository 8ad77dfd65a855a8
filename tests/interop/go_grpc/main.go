// Apache's gRPC client for Go on a cluster: sends messages of every kind, receives and acknowledges
// them, and prints a line for each kind; the last line is "end".
//
//	main ENDPOINT
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sort"
	"strings"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const patience = 30 * time.Second

var background = context.Background()

func main() {
	endpoint := os.Args[1]
	producer := producerAt(endpoint)
	defer func() { _ = producer.GracefulStop() }()

	for number := 0; number < 5; number++ {
		send(producer, message("o-normal", fmt.Sprintf("normal %d", number)))
	}
	report("normal", sorted(received(endpoint, "o-group", "o-normal", 5)))

	for number := 0; number < 5; number++ {
		ordered := message("o-fifo", fmt.Sprint(number))
		ordered.SetMessageGroup("customer-7")
		send(producer, ordered)
	}
	report("fifo", received(endpoint, "o-ordered", "o-fifo", 5))

	due := time.Now().Add(2 * time.Second)
	late := message("o-delay", "late")
	late.SetDelayTimestamp(due)
	send(producer, late)
	got := received(endpoint, "o-group", "o-delay", 1)
	report("delay", append(got, fmt.Sprint(!time.Now().Before(due.Truncate(time.Second)))))

	for _, word := range []string{"rollback", "commit", "orphan"} {
		transaction := producer.BeginTransaction()
		_, err := producer.SendWithTransaction(background, message("o-tx", word), transaction)
		check(err)
		switch word {
		case "commit":
			check(transaction.Commit())
		case "rollback":
			check(transaction.RollBack())
		}
	}
	report("tx", sorted(received(endpoint, "o-group", "o-tx", 2)))
	fmt.Println("end")
}

func config(endpoint, group string) *rmq.Config {
	own := &credentials.SessionCredentials{AccessKey: "ak", AccessSecret: "sk"}
	return &rmq.Config{Endpoint: endpoint, ConsumerGroup: group, Credentials: own}
}

// patient makes a client that has time for each response. Its own three seconds include the first
// connection with TLS, which takes longer where many processes start at once.
func patient(config *rmq.Config, options ...rmq.ClientOption) (rmq.Client, error) {
	return rmq.NewClient(config, append(options, rmq.WithQueryRouteTimeout(patience))...)
}

func producerAt(endpoint string) rmq.Producer {
	// The client asks this what became of a transaction that was neither committed nor rolled back.
	commits := func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT }
	producer, err := rmq.NewProducer(config(endpoint, ""),
		rmq.WithClientFunc(patient),
		rmq.WithTopics("o-normal", "o-fifo", "o-delay", "o-tx"),
		rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: commits}))
	check(err)
	check(producer.Start())
	return producer
}

func message(topic, body string) *rmq.Message {
	made := &rmq.Message{Topic: topic, Body: []byte(body)}
	made.SetTag("t")
	made.SetKeys("k")
	return made
}

func send(producer rmq.Producer, one *rmq.Message) {
	receipts, err := producer.Send(background, one)
	check(err)
	if len(receipts) != 1 || receipts[0].MessageID == "" {
		log.Fatalf("no receipt: %v", receipts)
	}
}

// received returns the bodies of messages, in the order of their arrival, once there are enough.
func received(endpoint, group, topic string, count int) []string {
	consumer, err := rmq.NewSimpleConsumer(config(endpoint, group),
		rmq.WithClientFuncForSimpleConsumer(patient),
		rmq.WithAwaitDuration(5*time.Second),
		rmq.WithSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
	check(err)
	check(consumer.Start())
	defer func() { _ = consumer.GracefulStop() }()
	var bodies []string
	for deadline := time.Now().Add(patience); len(bodies) < count && time.Now().Before(deadline); {
		views, err := consumer.Receive(background, 16, 20*time.Second)
		if err != nil && !strings.Contains(err.Error(), "MESSAGE_NOT_FOUND") {
			log.Fatal(err)
		}
		for _, view := range views {
			check(consumer.Ack(background, view))
			bodies = append(bodies, string(view.GetBody()))
		}
	}
	return bodies
}

func sorted(words []string) []string {
	sort.Strings(words)
	return words
}

func report(kind string, words []string) {
	fmt.Println(kind, strings.Join(words, ", "))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
