import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * One client that is a member of many groups: name server, topic, instance name, the queues it is
 * configured with ("broker/queue,..."), and groups. A group's name says its strategy and how it
 * consumes: "AVG-orderly". The client's room is what its instance name has before the first "-".
 * Prints what it owns and gets in each group; leaves all when told on its input.
 */
public class Crowd {
    static final Map<String, DefaultMQPushConsumer> MEMBERS = new LinkedHashMap<>();

    public static void main(String[] args) throws Exception {
        Awake.start();
        String topic = args[1];
        for (String group : Arrays.asList(args).subList(4, args.length)) {
            MEMBERS.put(group, member(args[0], topic, args[2], args[3], group));
        }
        for (DefaultMQPushConsumer each : MEMBERS.values()) {
            each.start();
        }
        System.out.println("is " + MEMBERS.values().iterator().next().buildMQClientId());
        Thread watching = new Thread(() -> watch(topic));
        watching.setDaemon(true);
        watching.start();
        new BufferedReader(new InputStreamReader(System.in)).readLine();
        for (DefaultMQPushConsumer each : MEMBERS.values()) {
            each.shutdown();
        }
        System.out.println("left");
        System.exit(0);
    }

    static DefaultMQPushConsumer member(
        String servers, String topic, String name, String queues, String group) throws Exception {
        int cut = group.lastIndexOf('-');
        String way = group.substring(cut + 1);
        DefaultMQPushConsumer consumer = Patient.made(new DefaultMQPushConsumer(
            group, null, strategy(group.substring(0, cut), topic, queues)));
        consumer.setNamesrvAddr(servers);
        consumer.setInstanceName(name);
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeThreadMin(2);
        consumer.setConsumeThreadMax(2);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        if (way.equals("broadcasting")) {
            Compatible.broadcast(consumer);
        }
        if (way.equals("orderly")) {
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                messages.forEach(each -> tell(group, each));
                return ConsumeOrderlyStatus.SUCCESS;
            });
        } else {
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                messages.forEach(each -> tell(group, each));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        return consumer;
    }

    static AllocateMessageQueueStrategy strategy(String name, String topic, String queues) {
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash();
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom rooms = new AllocateMessageQueueByMachineRoom();
                rooms.setConsumeridcs(new HashSet<>(Arrays.asList("east", "west")));
                return rooms;
            case "MACHINE_ROOM_NEARBY":
                return new AllocateMachineRoomNearby(new AllocateMessageQueueAveragely(), new Rooms());
            case "CONFIG":
                AllocateMessageQueueByConfig configured = new AllocateMessageQueueByConfig();
                List<MessageQueue> own = new ArrayList<>();
                for (String each : queues.split(",")) {
                    int cut = each.indexOf('/');
                    own.add(new MessageQueue(
                        topic, each.substring(0, cut), Integer.parseInt(each.substring(cut + 1))));
                }
                configured.setMessageQueueList(own);
                return configured;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return queue.getBrokerName().split("@")[0];
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return clientId.split("@")[1].split("-")[0];
        }
    }

    static void tell(String group, MessageExt message) {
        System.out.println(group + " got " + message.getBrokerName() + "/" + message.getQueueId() + "@"
            + message.getQueueOffset() + " " + new String(message.getBody(), StandardCharsets.UTF_8));
    }

    static void watch(String topic) {
        Map<String, String> last = new LinkedHashMap<>();
        while (true) {
            MEMBERS.forEach((group, consumer) -> {
                TreeSet<String> owned = new TreeSet<>();
                for (MessageQueue each : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl()
                    .getProcessQueueTable().keySet()) {
                    if (each.getTopic().equals(topic)) {
                        owned.add(each.getBrokerName() + "/" + each.getQueueId());
                    }
                }
                String now = group + " owns " + String.join(" ", owned);
                if (!now.equals(last.put(group, now))) {
                    System.out.println(now);
                }
            });
            try {
                Thread.sleep(50);
            } catch (InterruptedException over) {
                return;
            }
        }
    }
}
