// Produces and consumes with Apache's Go client, and prints what came of it: an order and a name server.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const patience = 40 * time.Second

var servers string

func main() {
	rlog.SetLogLevel("fatal")
	servers = os.Args[2]
	switch os.Args[1] {
	case "produce":
		produce()
	case "push":
		push()
	case "orderly":
		orderly()
	case "retried":
		retried()
	case "broadcast":
		broadcast()
	case "pull":
		pull()
	case "member":
		member(os.Args[3], os.Args[4], os.Args[5])
	default:
		check(fmt.Errorf("no such order: %s", os.Args[1]))
	}
	fmt.Println("end")
}

func check(problem error) {
	if problem != nil {
		fmt.Println("problem", problem)
		os.Exit(1)
	}
}

func resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver([]string{servers})
}

func newProducer(options ...producer.Option) rocketmq.Producer {
	options = append(options, producer.WithNsResolver(resolver()), producer.WithRetry(2))
	made, problem := rocketmq.NewProducer(options...)
	check(problem)
	check(made.Start())
	return made
}

func produce() {
	made, problem := admin.NewAdmin(admin.WithResolver(resolver()))
	check(problem)
	check(made.CreateTopic(context.Background(), admin.WithTopicCreate("go-made"),
		admin.WithBrokerAddrCreate(os.Args[3])))
	check(made.Close())

	sender := newProducer(producer.WithGroupName("go-producing"))
	message := primitive.NewMessage("go-singles", []byte("größe 1")).WithTag("paid").WithKeys([]string{"k1", "k2"})
	message.WithProperty("region", "eu")
	result, problem := sender.SendSync(context.Background(), message)
	check(problem)
	fmt.Println("sync", result.Status, result.MessageQueue.Topic, result.QueueOffset, len(result.OffsetMsgID))
	_, problem = sender.SendSync(context.Background(), primitive.NewMessage("go-made", []byte("made")))
	check(problem)
	check(sender.SendOneWay(context.Background(), primitive.NewMessage("go-oneways", []byte("no answer"))))

	var missing sync.WaitGroup
	for i := 0; i < 100; i++ {
		missing.Add(1)
		check(sender.SendAsync(context.Background(), func(_ context.Context, _ *primitive.SendResult, problem error) {
			check(problem)
			missing.Done()
		}, primitive.NewMessage("go-callbacks", []byte(fmt.Sprint("async ", i)))))
	}
	missing.Wait()
	fmt.Println("async 100")

	var batch []*primitive.Message
	for i := 0; i < 20; i++ {
		batch = append(batch, primitive.NewMessage("go-batches", []byte(fmt.Sprint("part ", i))).WithTag(fmt.Sprint("tag", i%2)))
	}
	result, problem = sender.SendSync(context.Background(), batch...)
	check(problem)
	fmt.Println("batch", result.Status, result.QueueOffset)

	text := strings.Repeat("0123456789", 2000)
	_, problem = sender.SendSync(context.Background(), primitive.NewMessage("go-compressed", []byte(text)))
	check(problem)
	delayed := primitive.NewMessage("go-delayed", []byte("later")).WithDelayTimeLevel(1)
	_, problem = sender.SendSync(context.Background(), delayed)
	check(problem)
	check(sender.Shutdown())

	ordered := newProducer(producer.WithGroupName("go-ordering"), producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for i := 0; i < 40; i++ {
		message := primitive.NewMessage("go-orders", []byte(fmt.Sprintf("%d:%d", i%4, i/4))).WithShardingKey(fmt.Sprint("key ", i%4))
		_, problem = ordered.SendSync(context.Background(), message)
		check(problem)
	}
	check(ordered.Shutdown())
}

// Texts of messages as they come.
type seen struct {
	lock  sync.Mutex
	texts []string
}

func (s *seen) add(text string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.texts = append(s.texts, text)
}

func (s *seen) await(count int) []string {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		s.lock.Lock()
		enough := len(s.texts) >= count
		s.lock.Unlock()
		if enough {
			break
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	return append([]string{}, s.texts...)
}

func newConsumer(group string, options ...consumer.Option) rocketmq.PushConsumer {
	options = append(options, consumer.WithNsResolver(resolver()), consumer.WithGroupName(group),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	made, problem := rocketmq.NewPushConsumer(options...)
	check(problem)
	return made
}

func listen(topic, tags string, count int, options ...consumer.Option) []string {
	got := &seen{}
	kind := consumer.TAG
	if strings.Contains(tags, "=") {
		kind = consumer.SQL92
	}
	made := newConsumer("group-"+topic, options...)
	selector := consumer.MessageSelector{Type: kind, Expression: tags}
	check(made.Subscribe(topic, selector, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			got.add(string(each.Body))
		}
		return consumer.ConsumeSuccess, nil
	}))
	check(made.Start())
	texts := got.await(count)
	check(made.Shutdown())
	return texts
}

func push() {
	texts := listen("go-callbacks", "*", 100)
	sort.Strings(texts)
	fmt.Println("push", len(texts), texts[0], texts[99])
	fmt.Println("tags", len(listen("go-batches", "tag1", 10)))
	fmt.Println("sql", len(listen("go-singles", "region = 'eu'", 1)))
	fmt.Println("compressed", len(listen("go-compressed", "*", 1)[0]))
	fmt.Println("delayed", listen("go-delayed", "*", 1))
}

func orderly() {
	next := map[string]int{}
	inOrder := true
	for _, text := range listen("go-orders", "*", 40, consumer.WithConsumerOrder(true)) {
		var key string
		var step int
		_, problem := fmt.Sscanf(strings.Replace(text, ":", " ", 1), "%s %d", &key, &step)
		check(problem)
		inOrder = inOrder && next[key] == step
		next[key] = step + 1
	}
	fmt.Println("orderly", next, inOrder)
}

func retried() {
	got := &seen{}
	made := newConsumer("go-retried")
	check(made.Subscribe("go-singles", consumer.MessageSelector{}, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			got.add(fmt.Sprint(each.Topic, " ", each.ReconsumeTimes, " ", string(each.Body)))
			if each.ReconsumeTimes == 0 {
				context, _ := primitive.GetConcurrentlyCtx(ctx)
				context.DelayLevelWhenNextConsume = 1
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}))
	check(made.Start())
	fmt.Println("retried", strings.Join(got.await(2), "; "))
	check(made.Shutdown())
}

func broadcast() {
	for _, name := range []string{"one", "two"} {
		texts := listen("go-callbacks", "*", 100, consumer.WithConsumerModel(consumer.BroadCasting), consumer.WithInstance(name))
		fmt.Println("broadcast", len(texts))
	}
}

func pull() {
	made, problem := rocketmq.NewPullConsumer(consumer.WithGroupName("go-pulling"), consumer.WithNsResolver(resolver()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	check(problem)
	check(made.Subscribe("go-callbacks", consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}))
	check(made.Start())
	texts := map[string]bool{}
	for deadline := time.Now().Add(patience); len(texts) < 100 && time.Now().Before(deadline); {
		context, done := context.WithTimeout(context.Background(), 5*time.Second)
		result, problem := made.Poll(context, time.Second)
		done()
		if consumer.IsNoNewMsgError(problem) {
			continue
		}
		check(problem)
		for _, each := range result.GetMsgList() {
			texts[string(each.Body)] = true
		}
		made.ACK(context, result, consumer.ConsumeSuccess)
	}
	fmt.Println("pull", len(texts))
	check(made.Shutdown())
}

// A member of a group: prints what it gets, until it is told to leave.
func member(group, topic, name string) {
	made := newConsumer(group, consumer.WithInstance(name))
	check(made.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			fmt.Printf("got %s/%d@%d %s\n", each.Queue.BrokerName, each.Queue.QueueId, each.QueueOffset, each.Body)
		}
		return consumer.ConsumeSuccess, nil
	}))
	check(made.Start())
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	check(made.Shutdown())
	fmt.Println("left")
}
