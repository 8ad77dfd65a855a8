// Produces and consumes with Apache's Go client in each of its ways; prints "ok …" lines, exits 1 on a failure.
//
// go mod init probe && go get github.com/apache/rocketmq-client-go/v2@v2.1.2 && go mod tidy && go build -o probe .
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func check(what string, err error) {
	if err != nil {
		fmt.Println("FAIL", what, err)
		os.Exit(1)
	}
	fmt.Println("ok", what)
}

func main() {
	rlog.SetLogLevel("error")
	ns := os.Args[1]
	p, err := rocketmq.NewProducer(producer.WithNameServer([]string{ns}), producer.WithGroupName("gop"), producer.WithRetry(2))
	check("new producer", err)
	check("start producer", p.Start())
	ctx := context.Background()
	msg := func(i int, tag string) *primitive.Message {
		m := primitive.NewMessage("gotopic", []byte(fmt.Sprintf("m%d", i)))
		m.WithTag(tag)
		m.WithKeys([]string{fmt.Sprintf("k%d", i)})
		return m
	}
	for i := 0; i < 20; i++ {
		tag := "a"
		if i%2 == 1 {
			tag = "b"
		}
		r, err := p.SendSync(ctx, msg(i, tag))
		if err != nil {
			check("send", err)
		}
		if i == 0 {
			fmt.Println(r.String())
		}
	}
	fmt.Println("ok send sync")
	var wg sync.WaitGroup
	var bad int32
	for i := 20; i < 120; i++ {
		wg.Add(1)
		err := p.SendAsync(ctx, func(_ context.Context, r *primitive.SendResult, e error) {
			if e != nil {
				atomic.AddInt32(&bad, 1)
			}
			wg.Done()
		}, msg(i, "a"))
		if err != nil {
			check("async", err)
		}
	}
	wg.Wait()
	if bad > 0 {
		check("async", fmt.Errorf("%d sends failed", bad))
	}
	fmt.Println("ok send async")
	for i := 120; i < 130; i++ {
		check2(p.SendOneWay(ctx, msg(i, "a")))
	}
	batch := []*primitive.Message{}
	for i := 130; i < 140; i++ {
		batch = append(batch, msg(i, "a"))
	}
	_, err = p.SendSync(ctx, batch...)
	check("batch", err)
	consume := func(group string, sel consumer.MessageSelector, orderly bool, want int) {
		var n int32
		done := make(chan bool, 1)
		c, err := rocketmq.NewPushConsumer(consumer.WithNameServer([]string{ns}), consumer.WithGroupName(group),
			consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithConsumerOrder(orderly))
		check("new consumer "+group, err)
		seen := sync.Map{}
		err = c.Subscribe("gotopic", sel, func(ctx context.Context, ms ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, m := range ms {
				if _, dup := seen.LoadOrStore(string(m.Body), true); !dup {
					if int(atomic.AddInt32(&n, 1)) == want {
						done <- true
					}
				}
			}
			return consumer.ConsumeSuccess, nil
		})
		check("subscribe "+group, err)
		check("start "+group, c.Start())
		select {
		case <-done:
			fmt.Println("ok", group, atomic.LoadInt32(&n))
		case <-time.After(40 * time.Second):
			fmt.Println("FAIL", group, "got", atomic.LoadInt32(&n), "of", want)
			os.Exit(1)
		}
		c.Shutdown()
	}
	consume("gocg", consumer.MessageSelector{}, false, 140)
	consume("gocgtag", consumer.MessageSelector{Type: consumer.TAG, Expression: "b"}, false, 10)
	consume("gocgorder", consumer.MessageSelector{}, true, 140)
	check("stop producer", p.Shutdown())
}

func check2(err error) {
	if err != nil {
		check("oneway", err)
	}
}
