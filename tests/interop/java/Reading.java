import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.selector.SelectMessageQueueByHash;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Prints every message of a topic as Java reads it: name server, topic, expression, namespace. */
public class Reading {
    public static void main(String[] args) throws Exception {
        Awake.start();
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer("readers-of-" + args[1]));
        if (args.length > 3) {
            consumer.setNamespace(args[3]);
        }
        consumer.setNamesrvAddr(args[0]);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setPollNameServerInterval(500);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(args[1], args[2]);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                print(message);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        List<MessageQueue> queues = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            queues.add(new MessageQueue(args[1], "java-broker", i));
        }
        for (String key : new String[] {"customer-7", "", "größe", "\uD83D\uDE00"}) {
            int queue = new SelectMessageQueueByHash().select(queues, null, key).getQueueId();
            System.out.println("hash " + queue);
        }
        System.out.println("ready");
        System.in.read();
        consumer.shutdown();
    }

    static synchronized void print(MessageExt message) {
        TreeMap<String, String> own = new TreeMap<>(message.getProperties());
        List<String> words = new ArrayList<>();
        words.add("topic=" + message.getTopic());
        words.add("queue=" + message.getQueueId());
        words.add("offset=" + message.getQueueOffset());
        words.add("id=" + message.getMsgId());
        words.add("tag=" + message.getTags());
        words.add("keys=" + message.getKeys());
        words.add("region=" + own.get("region"));
        words.add("flag=" + message.getFlag());
        words.add("system=" + message.getSysFlag());
        words.add("stored=" + message.getStoreSize());
        words.add("size=" + message.getBody().length);
        words.add("crc=" + UtilAll.crc32(message.getBody()));
        words.add("begin=" + new String(message.getBody(), 0, Math.min(8, message.getBody().length),
            StandardCharsets.UTF_8));
        words.add("pid=" + MessageClientIDSetter.getPidFromID(message.getMsgId()));
        words.add("born=" + (System.currentTimeMillis()
            - MessageClientIDSetter.getNearlyTimeFromID(message.getMsgId()).getTime()) / 60_000);
        words.add("waited=" + (message.getStoreTimestamp() - message.getBornTimestamp()));
        System.out.println("got " + String.join("|", words));
    }
}
