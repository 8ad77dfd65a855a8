import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Writes one JSON line per allocation question, answered by RocketMQ's own strategies.
 *
 * Queues and members are written as drawn and sorted before the question is put, as RocketMQ's
 * rebalance does. Run: java -cp 'DIRECTORY-OF-JARS/*' AllocationVectors.java java-allocation-more.jsonl
 */
public class AllocationVectors {
    static final Random random = new Random(20240607);
    static PrintStream out;

    // Sorted by UTF-16 units the second of the last two comes first; sorted by code points, last.
    static final String[] ODD = {"ä", "中文", "Ж", "é", "\uffee", "\ud83d\ude00"};

    static class Question {
        String topic = "T";
        String member = "";
        List<String> members = new ArrayList<>();
        List<MessageQueue> queues = new ArrayList<>();
        List<String> rooms = null;
        int virtualNodes = 10;
        boolean hashCode = false;
        List<MessageQueue> config = null;
    }

    public static void main(String[] args) throws Exception {
        out = new PrintStream(args[0], "UTF-8");
        guards();
        for (int i = 0; i < 150; i++) plain();
        for (int i = 0; i < 60; i++) odd();
        for (int i = 0; i < 60; i++) duplicates();
        for (int i = 0; i < 60; i++) nodes();
        for (int i = 0; i < 60; i++) collisions();
        for (int i = 0; i < 150; i++) rooms();
        out.close();
    }

    static void guards() {
        String[][] memberLists = {{}, {"c1", "c2"}, {"", "c1"}};
        for (String member : new String[] {"", "c1", "stranger"}) {
            for (String[] members : memberLists) {
                for (int count : new int[] {0, 3}) {
                    Question question = new Question();
                    question.member = member;
                    question.members.addAll(Arrays.asList(members));
                    question.rooms = List.of("r");
                    addQueues(question, "r@b", count);
                    question.config = new ArrayList<>(question.queues);
                    write(question);
                }
            }
        }
    }

    static void plain() {
        Question question = new Question();
        question.topic = "orders-" + random.nextInt(5);
        int brokers = 1 + random.nextInt(3);
        for (int i = 0; i < brokers; i++) addQueues(question, "broker-" + (9 + i), 1 + random.nextInt(6));
        int members = 1 + random.nextInt(14);
        for (int i = 0; i < members; i++) question.members.add("10.0.0." + i + "@" + random.nextInt(9999));
        if (random.nextInt(5) == 0) question.config = pick(question.queues);
        finish(question);
    }

    static void odd() {
        Question question = new Question();
        question.topic = "t" + any(ODD);
        for (String name : new LinkedHashSet<>(List.of(any(ODD) + "b", any(ODD), "b" + any(ODD), "z"))) {
            addQueues(question, name, 1 + random.nextInt(4));
        }
        for (int i = 0; i < 6; i++) question.members.add(any(ODD) + any(ODD) + random.nextInt(100));
        question.members = new ArrayList<>(new LinkedHashSet<>(question.members));
        finish(question);
    }

    static void duplicates() {
        Question question = new Question();
        addQueues(question, "broker-a", 1 + random.nextInt(10));
        addQueues(question, "r1@b", random.nextInt(6));
        question.rooms = List.of("r1");
        for (int i = 0; i < 7; i++) question.members.add("r" + random.nextInt(2) + "@c" + random.nextInt(3));
        finish(question);
    }

    static void nodes() {
        Question question = new Question();
        addQueues(question, "broker-a", 8);
        addQueues(question, "broker-b", 4);
        for (int i = 0; i < 5; i++) question.members.add("c" + random.nextInt(6));
        question.virtualNodes = new int[] {0, 1, 2, 3, 7, 64, 160}[random.nextInt(7)];
        finish(question);
    }

    // Under String.hashCode "Aa" and "BB" are one, so members fight over ring positions.
    static void collisions() {
        Question question = new Question();
        addQueues(question, "broker-a", 10);
        for (int i = 0; i < 6; i++) question.members.add((random.nextBoolean() ? "Aa" : "BB") + random.nextInt(2));
        question.virtualNodes = 1 + random.nextInt(12);
        question.hashCode = true;
        finish(question);
    }

    static void rooms() {
        Question question = new Question();
        String[] names = {"r1", "r2", "r3", "R", "中", "\ud83d\ude00", "\uffee"};
        int brokers = 1 + random.nextInt(4);
        HashSet<String> used = new HashSet<>();
        for (int i = 0; i < brokers; i++) {
            String name = any(names) + "@b" + i;
            if (random.nextInt(25) == 0) name = new String[] {"@b", "r1@", "r1@x@y", "r1"}[random.nextInt(4)];
            if (used.add(name)) addQueues(question, name, 1 + random.nextInt(6));
        }
        int members = 1 + random.nextInt(6);
        for (int i = 0; i < members; i++) question.members.add(any(names) + "@c" + random.nextInt(9));
        if (random.nextInt(20) == 0) question.members.add("homeless");
        question.rooms = new ArrayList<>();
        for (String name : names) if (random.nextBoolean()) question.rooms.add(name);
        if (random.nextInt(6) == 0) question.config = pick(question.queues);
        if (random.nextInt(3) == 0) question.virtualNodes = random.nextInt(4);
        finish(question);
    }

    static void finish(Question question) {
        Collections.shuffle(question.queues, random);
        Collections.shuffle(question.members, random);
        question.member = question.members.get(random.nextInt(question.members.size()));
        if (random.nextInt(25) == 0) question.member = "stranger@x";
        write(question);
    }

    static void write(Question question) {
        List<MessageQueue> queues = new ArrayList<>(question.queues);
        List<String> members = new ArrayList<>(question.members);
        Collections.sort(queues);
        Collections.sort(members);
        Map<String, String> line = new LinkedHashMap<>();
        line.put("topic", text(question.topic));
        line.put("cid", text(question.member));
        line.put("cids", texts(question.members));
        line.put("mqs", queues(question.queues));
        if (question.rooms != null) line.put("rooms", texts(question.rooms));
        if (question.virtualNodes != 10) line.put("virtualNodes", "" + question.virtualNodes);
        if (question.hashCode) line.put("hash", text("hashCode"));
        if (question.config != null) line.put("config", queues(question.config));
        for (AllocateMessageQueueStrategy strategy : strategies(question)) {
            String answer;
            try {
                answer = queues(strategy.allocate("g", question.member, queues, members));
            } catch (Exception e) {
                answer = "{\"error\":" + text(e.getClass().getSimpleName()) + "}";
            }
            line.put(strategy.getName(), answer);
        }
        List<String> fields = new ArrayList<>();
        line.forEach((key, value) -> fields.add(text(key) + ":" + value));
        out.print("{" + String.join(",", fields) + "}\n");
    }

    static List<AllocateMessageQueueStrategy> strategies(Question question) {
        List<AllocateMessageQueueStrategy> plain = new ArrayList<>();
        AllocateMessageQueueStrategy ring = question.hashCode
            ? new AllocateMessageQueueConsistentHash(question.virtualNodes, String::hashCode)
            : new AllocateMessageQueueConsistentHash(question.virtualNodes);
        if (question.virtualNodes == 10) {
            plain.add(new AllocateMessageQueueAveragely());
            plain.add(new AllocateMessageQueueAveragelyByCircle());
        }
        plain.add(ring);
        if (question.config != null) {
            AllocateMessageQueueByConfig config = new AllocateMessageQueueByConfig();
            config.setMessageQueueList(question.config);
            plain.add(config);
        }
        List<AllocateMessageQueueStrategy> all = new ArrayList<>(plain);
        if (question.rooms != null) {
            if (!question.rooms.isEmpty()) {
                AllocateMessageQueueByMachineRoom room = new AllocateMessageQueueByMachineRoom();
                room.setConsumeridcs(new HashSet<>(question.rooms));
                all.add(room);
            }
            for (AllocateMessageQueueStrategy inner : plain) all.add(new AllocateMachineRoomNearby(inner, resolver()));
        }
        return all;
    }

    static AllocateMachineRoomNearby.MachineRoomResolver resolver() {
        return new AllocateMachineRoomNearby.MachineRoomResolver() {
            @Override
            public String brokerDeployIn(MessageQueue queue) {
                return prefix(queue.getBrokerName());
            }

            @Override
            public String consumerDeployIn(String member) {
                return prefix(member);
            }

            private String prefix(String name) {
                return name.contains("@") ? name.substring(0, name.indexOf('@')) : null;
            }
        };
    }

    static void addQueues(Question question, String broker, int count) {
        for (int i = 0; i < count; i++) question.queues.add(new MessageQueue(question.topic, broker, i));
    }

    static List<MessageQueue> pick(List<MessageQueue> queues) {
        List<MessageQueue> result = new ArrayList<>();
        for (MessageQueue queue : queues) if (random.nextBoolean()) result.add(queue);
        return result;
    }

    static String any(String[] choices) {
        return choices[random.nextInt(choices.length)];
    }

    static String queues(List<MessageQueue> queues) {
        List<String> parts = new ArrayList<>();
        for (MessageQueue queue : queues) parts.add("[" + text(queue.getBrokerName()) + "," + queue.getQueueId() + "]");
        return "[" + String.join(",", parts) + "]";
    }

    static String texts(List<String> values) {
        List<String> parts = new ArrayList<>();
        for (String value : values) parts.add(text(value));
        return "[" + String.join(",", parts) + "]";
    }

    static String text(String value) {
        StringBuilder result = new StringBuilder("\"");
        for (char unit : value.toCharArray()) {
            if (unit < 32 || unit > 126 || unit == '"' || unit == '\\') result.append(String.format("\\u%04x", (int) unit));
            else result.append(unit);
        }
        return result.append('"').toString();
    }
}
