import java.io.PrintStream;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.StringJoiner;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.body.ProcessQueueInfo;

/**
 * Writes java-process-queue.jsonl: random operations on Java's ProcessQueue, with what it answered.
 * Run with the client jars on the class path: java -cp 'JARS/*' ProcessQueueVectors.java FILE
 *
 * A line is a list of steps [operation, arguments, answer, state], where state is
 * [count, size, span, cached min, max, count, consuming min, max, count, backlog].
 */
public class ProcessQueueVectors {
    public static void main(String[] args) throws Exception {
        try (PrintStream out = new PrintStream(args[0])) {
            for (int seed = 0; seed < 180; seed++) {
                out.println(sequence(new Random(seed), seed % 3));
            }
        }
    }

    static String sequence(Random random, int style) {
        ProcessQueue queue = new ProcessQueue();
        List<MessageExt> known = new ArrayList<>();
        List<MessageExt> taken = new ArrayList<>();
        long next = random.nextInt(50);
        StringJoiner steps = new StringJoiner(",", "[", "]");
        int length = 12 + random.nextInt(18);
        for (int i = 0; i < length; i++) {
            int dice = random.nextInt(100);
            String name;
            String arguments = "[]";
            String answer = "null";
            if (dice < 35 || known.isEmpty()) {
                name = "put";
                List<MessageExt> batch = new ArrayList<>();
                int size = random.nextInt(6);
                for (int k = 0; k < size; k++) {
                    boolean odd = random.nextInt(100) < (style == 0 ? 0 : 20);
                    long offset = odd ? Math.max(0, next - random.nextInt(12)) : next;
                    if (!odd) {
                        next += 1 + (random.nextInt(10) == 0 ? random.nextInt(30) : 0);
                    }
                    batch.add(message(offset, random.nextInt(8) == 0 ? -1 : random.nextInt(900)));
                }
                long end = random.nextInt(3) == 0 ? -1 : next + random.nextInt(20) - 5;
                if (end >= 0 && !batch.isEmpty()) {
                    MessageAccessor.putProperty(batch.get(batch.size() - 1),
                        MessageConst.PROPERTY_MAX_OFFSET, String.valueOf(end));
                }
                arguments = "[" + list(batch) + "," + (end >= 0 ? end : "null") + "]";
                answer = String.valueOf(queue.putMessage(batch));
                known.addAll(batch);
            } else if (dice < 60 && style != 2) {
                name = "remove";
                List<MessageExt> batch = new ArrayList<>();
                int size = random.nextInt(5);
                int from = random.nextInt(known.size());
                for (int k = from; k < Math.min(from + size, known.size()); k++) {
                    batch.add(known.get(k));
                }
                arguments = "[" + list(batch) + "]";
                answer = String.valueOf(queue.removeMessage(batch));
                if (random.nextBoolean()) {
                    known.removeAll(batch);
                }
            } else if (dice < 75) {
                name = "take";
                int size = 1 + random.nextInt(5);
                arguments = "[" + size + "]";
                List<MessageExt> batch = queue.takeMessages(size);
                answer = list(batch);
                taken.addAll(batch);
            } else if (dice < 84) {
                name = "commit";
                try {
                    answer = String.valueOf(queue.commit());
                } catch (NoSuchElementException e) {
                    answer = "\"nothing\"";
                }
                taken.clear();
            } else if (dice < 88) {
                name = "rollback";
                queue.rollback();
                taken.clear();
            } else if (dice < 94) {
                name = "again";
                List<MessageExt> batch = new ArrayList<>();
                for (MessageExt message : taken) {
                    if (random.nextInt(3) > 0) {
                        batch.add(message);
                    }
                }
                arguments = "[" + list(batch) + "]";
                queue.makeMessageToConsumeAgain(batch);
                taken.removeAll(batch);
            } else if (dice < 98) {
                name = "contains";
                MessageExt message = known.get(random.nextInt(known.size()));
                arguments = "[" + one(message) + "]";
                answer = String.valueOf(queue.containsMessage(message));
            } else {
                name = "clear";
                queue.clear();
                taken.clear();
            }
            steps.add("[\"" + name + "\"," + arguments + "," + answer + "," + state(queue) + "]");
        }
        return steps.toString();
    }

    static MessageExt message(long offset, int size) {
        MessageExt message = new MessageExt();
        message.setQueueOffset(offset);
        message.setBody(size < 0 ? null : new byte[size]);
        return message;
    }

    static String one(MessageExt message) {
        return "[" + message.getQueueOffset() + ","
            + (message.getBody() == null ? 0 : message.getBody().length) + "]";
    }

    static String list(List<MessageExt> messages) {
        StringJoiner joiner = new StringJoiner(",", "[", "]");
        for (MessageExt message : messages) {
            joiner.add(one(message));
        }
        return joiner.toString();
    }

    static String state(ProcessQueue queue) {
        ProcessQueueInfo info = new ProcessQueueInfo();
        queue.fillProcessQueueInfo(info);
        return "[" + queue.getMsgCount().get() + "," + queue.getMsgSize().get() + "," + queue.getMaxSpan()
            + "," + info.getCachedMsgMinOffset() + "," + info.getCachedMsgMaxOffset()
            + "," + info.getCachedMsgCount() + "," + info.getTransactionMsgMinOffset()
            + "," + info.getTransactionMsgMaxOffset() + "," + info.getTransactionMsgCount()
            + "," + queue.getMsgAccCnt() + "]";
    }
}
