import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.exception.RemotingException;

/**
 * Apache's client under load, told what to do by lines on its input; each ends with a line `done …`.
 * Argument: the name server; the system properties `side.user` and `side.secret` are the account.
 */
public class SideLoad {
    static final byte[] BODY = new byte[100];
    /** The number of this process, as Java 8 tells it. */
    static final String ME = ManagementFactory.getRuntimeMXBean().getName().split("@")[0];
    static String nameServer;
    /** Messages that wait for an answer, at most, where the client makes batches. */
    static final int SUBMITTED = 32_768;
    static DefaultMQProducer producer;
    static DefaultMQProducer batching;
    static TransactionMQProducer transactions;

    /** Ends the process if it fails: threads of a client keep it alive otherwise, and nobody hears of it. */
    public static void main(String[] args) {
        try {
            follow(args);
            System.exit(0);
        } catch (Throwable failure) {
            System.err.println(failure);
            System.exit(1);
        }
    }

    static void follow(String[] args) throws Exception {
        Arrays.fill(BODY, (byte) 'x');
        nameServer = args[0];
        producer = started(new DefaultMQProducer("side-load", hook()), "load");
        System.out.println("ready");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "one": one(words[1], seconds(words[2]), level(words, 3)); break;
                case "flight":
                    flight(words[1], Integer.parseInt(words[2]), seconds(words[3]), level(words, 4));
                    break;
                case "submit": submit(words[1], seconds(words[2])); break;
                case "transact": transact(words[1], seconds(words[2])); break;
                case "pop":
                    SidePop.run(producer, words[1], words[2], Integer.parseInt(words[3]), seconds(words[4]));
                    break;
                case "batch": batch(words[1], Integer.parseInt(words[2]), seconds(words[3])); break;
                case "fill": fill(words[1], Integer.parseInt(words[2])); break;
                case "drip": drip(words[1], Integer.parseInt(words[2]), Double.parseDouble(words[3])); break;
                case "consume":
                    consume(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                    break;
                case "listen":
                    listen(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                    break;
                case "member": member(words[1], words[2], input); break;
                default: throw new IllegalArgumentException(line);
            }
        }
    }

    static RPCHook hook() {
        String user = System.getProperty("side.user");
        if (user == null) {
            return null;
        }
        return new AclClientRPCHook(new SessionCredentials(user, System.getProperty("side.secret")));
    }

    static <P extends DefaultMQProducer> P started(P made, String name) throws Exception {
        made.setNamesrvAddr(nameServer);
        made.setInstanceName(name + ME);
        made.setSendMsgTimeout(30000);
        made.setMqClientApiTimeout(30000); // classes are loaded in it, while others start
        made.start();
        return made;
    }

    static int level(String[] words, int at) {
        return at < words.length ? Integer.parseInt(words[at]) : 0;
    }

    static Message message(String topic, int level) {
        Message message = new Message(topic, BODY);
        if (level > 0) {
            message.setDelayTimeLevel(level);
        }
        return message;
    }

    static long seconds(String text) {
        return (long) (Double.parseDouble(text) * 1e9);
    }

    static void done(long count, long nanos) {
        System.out.println("done " + count + " " + nanos / 1e9);
    }

    static void one(String topic, long nanos, int level) throws Exception {
        long start = System.nanoTime();
        long count = 0;
        while (count == 0 || System.nanoTime() - start < nanos) {
            try {
                producer.send(message(topic, level));
                count++;
            } catch (MQBrokerException | RemotingException | MQClientException error) {
                refused(error);
            }
        }
        done(count, System.nanoTime() - start);
    }

    /** Tells of a send that failed: it does not count, its time does. */
    static void refused(Throwable error) {
        System.err.println("a send failed: " + error);
    }

    static void flight(String topic, int depth, long nanos, int level) throws Exception {
        keepInFlight(producer, topic, depth, nanos, level);
    }

    /** Lets a producer of its own make batches: what it collects waits for them, also one at a time. */
    static void submit(String topic, long nanos) throws Exception {
        if (batching == null) {
            batching = new DefaultMQProducer("side-batching", hook());
            batching.setAutoBatch(true);
            started(batching, "batching");
        }
        keepInFlight(batching, topic, SUBMITTED, nanos, 0);
    }

    static void keepInFlight(DefaultMQProducer sender, String topic, int depth, long nanos, int level)
        throws Exception {
        Semaphore room = new Semaphore(depth);
        AtomicLong stored = new AtomicLong();
        SendCallback callback = new SendCallback() {
            @Override
            public void onSuccess(SendResult result) {
                stored.incrementAndGet();
                room.release();
            }

            @Override
            public void onException(Throwable error) {
                refused(error);
                room.release();
            }
        };
        long start = System.nanoTime();
        while (stored.get() == 0 || System.nanoTime() - start < nanos) {
            room.acquire();
            sender.send(message(topic, level), callback);
        }
        room.acquire(depth);
        done(stored.get(), System.nanoTime() - start);
    }

    /** Sends half messages and commits each. */
    static void transact(String topic, long nanos) throws Exception {
        if (transactions == null) {
            transactions = new TransactionMQProducer("side-transactions", hook());
            transactions.setTransactionListener(new TransactionListener() {
                @Override
                public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
                    return LocalTransactionState.COMMIT_MESSAGE;
                }

                @Override
                public LocalTransactionState checkLocalTransaction(MessageExt message) {
                    return LocalTransactionState.COMMIT_MESSAGE;
                }
            });
            started(transactions, "transactions");
        }
        long start = System.nanoTime();
        long count = 0;
        while (System.nanoTime() - start < nanos) {
            transactions.sendMessageInTransaction(new Message(topic, BODY), null);
            count++;
        }
        done(count, System.nanoTime() - start);
    }

    static void batch(String topic, int size, long nanos) throws Exception {
        long start = System.nanoTime();
        long count = 0;
        while (count == 0 || System.nanoTime() - start < nanos) {
            try {
                sendBatch(topic, size);
                count += size;
            } catch (MQBrokerException | RemotingException | MQClientException error) {
                refused(error);
            }
        }
        done(count, System.nanoTime() - start);
    }

    static void fill(String topic, int count) throws Exception {
        long start = System.nanoTime();
        for (int sent = 0; sent < count; sent += 256) {
            sendBatch(topic, Math.min(256, count - sent));
        }
        done(count, System.nanoTime() - start);
    }

    static void sendBatch(String topic, int size) throws Exception {
        List<Message> messages = new ArrayList<>(size);
        for (int i = 0; i < size; i++) {
            messages.add(new Message(topic, BODY));
        }
        producer.send(messages);
    }

    static long micros() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    static byte[] stamped(int number) {
        byte[] body = BODY.clone();
        byte[] text = (number + " " + micros() + " ").getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, body, 0, text.length);
        return body;
    }

    static void drip(String topic, int count, double rate) throws Exception {
        long start = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long wait = start + (long) (i * 1e9 / rate) - System.nanoTime();
            if (wait > 0) {
                TimeUnit.NANOSECONDS.sleep(wait);
            }
            producer.send(new Message(topic, stamped(i)));
        }
        done(count, System.nanoTime() - start);
    }

    static DefaultMQPushConsumer consumer(String topic, String group) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("member" + ME + "-" + System.nanoTime());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    static void consume(String topic, String group, int count, int size) throws Exception {
        DefaultMQPushConsumer consumer = consumer(topic, group);
        if (size > 1) {
            consumer.setPullBatchSize(size);
            consumer.setConsumeMessageBatchMaxSize(size);
            consumer.setPullThresholdForQueue(16 * size);
            consumer.setConsumeConcurrentlyMaxSpan(32 * size);
        }
        int warm = count / 8;
        AtomicInteger seen = new AtomicInteger();
        AtomicLong began = new AtomicLong();
        AtomicLong ended = new AtomicLong();
        CountDownLatch over = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            int after = seen.addAndGet(messages.size());
            int before = after - messages.size();
            if (before < warm && warm <= after) {
                began.set(System.nanoTime());
                System.out.println("begun");
            }
            if (before < count && count <= after) {
                ended.set(System.nanoTime());
                over.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        over.await();
        done(count - warm, ended.get() - began.get());
        consumer.shutdown();
        System.out.println("closed");
    }

    static void listen(String topic, String group, int lead, int live) throws Exception {
        int count = lead + live;
        long[] delays = new long[count];
        AtomicInteger seen = new AtomicInteger();
        CountDownLatch over = new CountDownLatch(1);
        DefaultMQPushConsumer consumer = consumer(topic, group);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = micros();
            for (MessageExt message : messages) {
                String text = new String(message.getBody(), StandardCharsets.US_ASCII);
                int at = seen.getAndIncrement();
                if (at < count) {
                    delays[at] = now - Long.parseLong(text.split(" ")[1]);
                }
                if (at + 1 == count) {
                    over.countDown();
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("listening");
        over.await();
        long[] later = Arrays.copyOfRange(delays, lead, count);
        Arrays.sort(later);
        System.out.println("done " + later[later.length / 2] + " " + later[later.length * 99 / 100]);
        consumer.shutdown();
        System.out.println("closed");
    }

    static void member(String topic, String group, BufferedReader input) throws Exception {
        DefaultMQPushConsumer consumer = consumer(topic, group);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            StringBuilder lines = new StringBuilder();
            for (MessageExt message : messages) {
                lines.append("got ").append(message.getQueueId()).append(' ');
                lines.append(message.getQueueOffset()).append(' ').append(micros()).append('\n');
            }
            System.out.print(lines);
            System.out.flush();
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("joined");
        input.readLine();
        consumer.shutdown();
        System.out.println("left");
    }
}
