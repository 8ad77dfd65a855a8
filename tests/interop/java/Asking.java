import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Asks what a client can ask of a broker, and pulls by hand: name server. */
@SuppressWarnings("deprecation")
public class Asking {
    static DefaultMQProducer producer;
    static DefaultMQPullConsumer consumer;
    static MessageQueue queue;
    static final List<SendResult> sent = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Awake.start();
        int status = 1;
        try {
            producer = Patient.made(new DefaultMQProducer("for-asking"));
            producer.setNamesrvAddr(args[0]);
            producer.setPollNameServerInterval(1000);
            producer.setHeartbeatBrokerInterval(1000);
            producer.start();
            Compatible.createTopic(producer, "asked", 1);
            consumer = Patient.made(new DefaultMQPullConsumer("asking"));
            consumer.setNamesrvAddr(args[0]);
            consumer.setPollNameServerInterval(1000);
            consumer.setHeartbeatBrokerInterval(1000);
            consumer.start();
            queue = consumer.fetchSubscribeMessageQueues("asked").iterator().next();
            offsets();
            messages();
            pulls();
            progress();
            consumer.shutdown();
            producer.shutdown();
            System.out.println("end");
            status = 0;
        } catch (Throwable problem) {
            problem.printStackTrace(System.out);
        }
        System.exit(status);
    }

    static void offsets() throws Exception {
        System.out.println("empty " + consumer.minOffset(queue) + " " + consumer.maxOffset(queue)
            + " " + consumer.searchOffset(queue, System.currentTimeMillis()) + " " + consumer.earliestMsgStoreTime(queue));
        long start = System.currentTimeMillis();
        long middle = 0;
        for (int i = 0; i < 10; i++) {
            if (i == 5) {
                Thread.sleep(30);
                middle = System.currentTimeMillis();
                Thread.sleep(30);
            }
            Message message = new Message("asked", i % 2 == 0 ? "even" : "odd", "all key-" + i, text("message " + i));
            sent.add(producer.send(message));
        }
        long earliest = consumer.earliestMsgStoreTime(queue);
        System.out.println("offsets " + consumer.minOffset(queue) + " " + consumer.maxOffset(queue)
            + " at first " + consumer.searchOffset(queue, start - 1000)
            + " earliest " + (earliest >= start && earliest <= middle));
        System.out.println("middle " + (consumer.searchOffset(queue, middle)));
    }

    static void messages() throws Exception {
        SendResult third = sent.get(3);
        System.out.println("by offset id " + told(consumer.viewMessage("asked", third.getOffsetMsgId())));
        long now = System.currentTimeMillis();
        await(() -> consumer.viewMessage("asked", third.getMsgId()));
        System.out.println("by unique id " + told(consumer.viewMessage("asked", third.getMsgId())));
        await(() -> consumer.queryMessage("asked", "key-7", 32, 0, now + 60_000));
        System.out.println("by key " + told(consumer.queryMessage("asked", "key-7", 32, 0, now + 60_000)));
        System.out.println("by common key " + told(consumer.queryMessage("asked", "all", 4, 0, now + 60_000)).size());
        try {
            System.out.println("by no key " + consumer.queryMessage("asked", "nothing", 32, 0, now + 60_000));
        } catch (Exception none) {
            System.out.println("by no key " + none.getMessage().split("\n")[0]);
        }
        try {
            consumer.queryMessage("asked", "key-7", 32, 0, 1);
        } catch (Exception none) {
            System.out.println("too early " + none.getMessage().split("\n")[0]);
        }
    }

    static void pulls() throws Exception {
        say(consumer.pull(queue, "*", 0, 4));
        say(consumer.pull(queue, "odd", 0, 32));
        say(consumer.pull(queue, "none", 0, 32));
        say(consumer.pull(queue, "*", 10, 32));
        say(consumer.pull(queue, "*", 12, 32));
        Thread later = new Thread(() -> {
            try {
                Thread.sleep(300);
                producer.send(new Message("asked", text("waited for")));
            } catch (Exception problem) {
                problem.printStackTrace(System.out);
            }
        });
        later.start();
        long start = System.currentTimeMillis();
        PullResult waited = consumer.pullBlockIfNotFound(queue, "*", 10, 32);
        long took = System.currentTimeMillis() - start;
        later.join();
        say(waited);
        System.out.println("waited " + (took >= 200 && took < 5000));
    }

    static void progress() throws Exception {
        System.out.println("progress before " + consumer.fetchConsumeOffset(queue, true));
        consumer.updateConsumeOffset(queue, 7);
        consumer.getOffsetStore().updateConsumeOffsetToBroker(queue, 7, false);
        System.out.println("progress " + consumer.fetchConsumeOffset(queue, true));
    }

    static void say(PullResult result) {
        List<String> texts = new ArrayList<>();
        if (result.getMsgFoundList() != null) {
            result.getMsgFoundList().forEach(each -> texts.add(new String(each.getBody(), StandardCharsets.UTF_8)));
        }
        System.out.println("pull " + result.getPullStatus() + " next " + result.getNextBeginOffset()
            + " of " + result.getMinOffset() + " to " + result.getMaxOffset() + " " + texts);
    }

    static String told(MessageExt message) {
        return message.getTopic() + " " + message.getQueueId() + "@" + message.getQueueOffset() + " "
            + message.getKeys() + " " + message.getTags() + " " + new String(message.getBody(), StandardCharsets.UTF_8);
    }

    static List<String> told(QueryResult result) {
        List<String> texts = new ArrayList<>();
        result.getMessageList().forEach(each -> texts.add(told(each)));
        Collections.sort(texts);
        return texts;
    }

    static byte[] text(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    interface Question {
        Object ask() throws Exception;
    }

    /** A Java broker writes its key index a moment after the message. */
    static void await(Question question) throws Exception {
        long deadline = System.currentTimeMillis() + 20_000;
        while (true) {
            try {
                if (question.ask() != null) {
                    return;
                }
            } catch (Exception missing) {
                if (System.currentTimeMillis() > deadline) {
                    throw missing;
                }
            }
            Thread.sleep(20);
        }
    }
}
