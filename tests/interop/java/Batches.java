import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Batches of a topic with queues of batches: what to do, name server, topic, then what it needs. */
public class Batches {
    public static void main(String[] args) throws Exception {
        Awake.start();
        if (args[0].equals("send")) {
            send(args);
        } else if (args[0].equals("pull")) {
            pull(args);
        } else {
            push(args);
        }
        System.out.println("end");
        System.exit(0);
    }

    /** Sends a batch for each word, a message for each letter; a word of one letter goes alone. */
    static void send(String[] args) throws Exception {
        DefaultMQProducer producer = Patient.made(new DefaultMQProducer("batches"));
        producer.setNamesrvAddr(args[1]);
        producer.start();
        for (int i = 3; i < args.length; i++) {
            List<Message> messages = new ArrayList<>();
            for (char letter : args[i].toCharArray()) {
                byte[] body = String.valueOf(letter).getBytes(StandardCharsets.UTF_8);
                messages.add(new Message(args[2], "tag-" + letter, "key-" + letter, body));
            }
            SendResult result = messages.size() == 1
                ? producer.send(messages.get(0)) : producer.send(messages);
            System.out.println(args[i] + " " + result.getSendStatus() + " " + result.getQueueOffset()
                + " " + result.getMsgId().split(",").length
                + " " + result.getOffsetMsgId().split(",").length);
        }
        producer.shutdown();
    }

    /** Pulls one queue, from an offset on, at most some messages, until there are no more. */
    static void pull(String[] args) throws Exception {
        DefaultMQPullConsumer consumer = Patient.made(new DefaultMQPullConsumer("pulling-batches"));
        consumer.setNamesrvAddr(args[1]);
        consumer.start();
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(args[2]).iterator().next();
        System.out.println("bounds " + consumer.minOffset(queue) + " " + consumer.maxOffset(queue));
        long offset = Long.parseLong(args[3]);
        while (offset < consumer.maxOffset(queue)) {
            PullResult result = consumer.pull(queue, args[5], offset, Integer.parseInt(args[4]));
            StringBuilder found = new StringBuilder();
            if (result.getMsgFoundList() != null) {
                for (MessageExt message : result.getMsgFoundList()) {
                    found.append(' ').append(shown(message));
                }
            }
            System.out.println(offset + " " + result.getPullStatus() + " "
                + result.getNextBeginOffset() + found);
            offset = result.getNextBeginOffset();
        }
        consumer.shutdown();
    }

    static String shown(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8) + "@" + message.getQueueOffset()
            + ":" + message.getTags();
    }

    /** Consumes until so many messages were handled; those named fail the first time. */
    static void push(String[] args) throws Exception {
        int wanted = Integer.parseInt(args[3]);
        Set<String> failing = ConcurrentHashMap.newKeySet();
        Set<String> handled = ConcurrentHashMap.newKeySet();
        for (int i = 4; i < args.length; i++) {
            failing.add(args[i]);
        }
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("pushed-" + args[2]));
        consumer.setNamesrvAddr(args[1]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[2], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt message = messages.get(0);
            String body = new String(message.getBody(), StandardCharsets.UTF_8);
            context.setDelayLevelWhenNextConsume(1);
            if (failing.remove(body)) {
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            handled.add(body + " " + message.getReconsumeTimes());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long deadline = System.currentTimeMillis() + 60_000;
        while (handled.size() < wanted && System.currentTimeMillis() < deadline) {
            Thread.sleep(50);
        }
        for (String each : new java.util.TreeSet<>(handled)) {
            System.out.println(each);
        }
        consumer.shutdown();
    }
}
