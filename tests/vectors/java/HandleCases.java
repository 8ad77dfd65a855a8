import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.rocketmq.common.KeyBuilder;
import org.apache.rocketmq.common.producer.RecallMessageHandle;
import org.apache.rocketmq.common.producer.RecallMessageHandle.HandleV1;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;

/**
 * Computes pop and recall strings with RocketMQ's own classes: built from parts, and read.
 *
 * Run: java -cp "rocketmq-5.5.0/*" HandleCases.java > java-handles.jsonl
 * One JSON object a line; "result" is absent where Java refuses the text.
 */
public class HandleCases {
    static final Random CHANCE = new Random(20);
    static final String[] TOPICS = {"orders", "%RETRY%g_orders", "%RETRY%g+orders", "%RETRY%g", "a+b"};
    static final long[] LONGS = {0, 1, -1, 1794707172145L, Long.MAX_VALUE, Long.MIN_VALUE};
    static final int[] INTS = {0, 1, -1, 7, 999, Integer.MAX_VALUE, Integer.MIN_VALUE};

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 60; i++) built();
        for (String topic : TOPICS) {
            for (String mark : List.of("0", "1", "2")) {
                line("real", quote(topic) + ", " + quote("g") + ", " + quote(mark),
                    () -> quote(ExtraInfoUtil.getRealTopic(topic, "g", mark)));
            }
        }
        String[] handles = {"", " ", "1", "1 2 3 4 0 b", "1 2 3 4 0 b 6", "1 2 3 4 0 b 6 7",
            "1 2 3 4 0 b 6 7 8", "+1 02 3 4 1 b 6 7", "1 2 3 4 2 b 6 ", "x 2 3 4 0 b 6", "1 2 3 4.0 0 b 6",
            "1 2 3 2147483648 0 b 6", "9223372036854775808 2 3 4 0 b 6", "1  2 3 4 0 b 6", "1 2 3 4 0  6",
            "1 2 3 999 0 b 6 7", " 1 2 3 4 0 b 6", "1 2 3 4 0 b -6 -7"};
        for (String text : handles) line("read handle", quote(text), () -> handle(text));
        String[] infos = {"", ";", "0 3 100", "0 3 100;1 3 5", "0 3 100;0 3 5", "0 3", "0 3 100 4", "0 3 100;",
            ";0 3 100", "0 3 +5", "0 3 x", "0 3 9223372036854775807", "0 3 9223372036854775808", "0 3 1,2,3",
            "0 3 1,2,", "0 3 ,", "0 3 ,1", "0 qo3%100 2;0 3 1", "0 qo3%100 2;0 qo3%100 1", "0 3 2147483648",
            "0 3 2147483647", "0  3 1", "2 0 1;1 0 2;0 0 3"};
        for (String text : infos) {
            line("read starts", quote(text), () -> map(ExtraInfoUtil.parseStartOffsetInfo(text)));
            line("read offsets", quote(text), () -> map(ExtraInfoUtil.parseMsgOffsetInfo(text)));
            line("read counts", quote(text), () -> map(ExtraInfoUtil.parseOrderCountInfo(text)));
        }
        String good = HandleV1.buildHandle("orders", "broker-a", "1794707172145", "0A1B");
        String[] recalls = {"", good, good.replace("=", ""), good + "=", good + "\n", "djEgYSBiIDEgYw==", "djEgYSBiIDEgYw=", "djEgYSBiIDEgYw",
            "djEgYSBiIDEgY", "djIgYSBiIDEgYw==", "djEgYSBiIDE=", "djEgYSBiIDEgYyBk", "djEgYSBiIDEg+w==", "djEgYSBiIDEg_w==",
            "djEg YSBiIDEgYw==", "====", "=", "djEgICAxIGM=", "djEgYSBiIC0xIGM=", "djEgYSBiIDEgYx==", "djEgYSBiIDEgYw==djEg"};
        for (String text : recalls) line("read recall", quote(text), () -> recall(text));
    }

    static void built() throws Exception {
        long a = any(LONGS), b = any(LONGS), c = any(LONGS), d = any(LONGS);
        int r = any(INTS), q = any(INTS);
        String topic = TOPICS[CHANCE.nextInt(TOPICS.length)], broker = "broker-" + CHANCE.nextInt(3);
        String parts = a + ", " + b + ", " + c + ", " + r + ", " + quote(topic) + ", " + quote(broker) + ", " + q;
        line("handle", parts, () -> quote(ExtraInfoUtil.buildExtraInfo(a, b, c, r, topic, broker, q)));
        line("handle", parts + ", " + d, () -> quote(ExtraInfoUtil.buildExtraInfo(a, b, c, r, topic, broker, q, d)));
        StringBuilder starts = new StringBuilder("0 5 5"), offsets = new StringBuilder("0 5 5"), counts = new StringBuilder("0 5 5");
        ExtraInfoUtil.buildStartOffsetInfo(starts, topic, q, a);
        ExtraInfoUtil.buildMsgOffsetInfo(offsets, topic, q, Arrays.asList(a, b, c));
        ExtraInfoUtil.buildQueueIdOrderCountInfo(counts, topic, q, r);
        ExtraInfoUtil.buildQueueOffsetOrderCountInfo(counts, topic, q, d, r);
        line("starts", quote(topic) + ", " + q + ", " + a, () -> quote(starts.toString()));
        line("offsets", quote(topic) + ", " + q + ", " + a + ", " + b + ", " + c, () -> quote(offsets.toString()));
        line("counts", quote(topic) + ", " + q + ", " + d + ", " + r, () -> quote(counts.toString()));
        String id = "FD00\u00fc" + Long.toHexString(CHANCE.nextLong());
        line("recall", quote(topic) + ", " + quote(broker) + ", " + a + ", " + quote(id),
            () -> quote(HandleV1.buildHandle(topic, broker, String.valueOf(a), id)));
    }

    static String handle(String text) {
        String[] p = ExtraInfoUtil.split(text);
        List<String> values = new ArrayList<>(List.of("" + ExtraInfoUtil.getCkQueueOffset(p), "" + ExtraInfoUtil.getPopTime(p),
            "" + ExtraInfoUtil.getInvisibleTime(p), "" + ExtraInfoUtil.getReviveQid(p), quote(ExtraInfoUtil.getRetry(p)),
            quote(ExtraInfoUtil.getBrokerName(p)), "" + ExtraInfoUtil.getQueueId(p), "" + ExtraInfoUtil.isOrder(p)));
        if (p.length > 7) values.add("" + ExtraInfoUtil.getQueueOffset(p));
        return values.toString();
    }

    static String recall(String text) throws Exception {
        HandleV1 handle = (HandleV1) RecallMessageHandle.decodeHandle(text);
        return List.of(quote(handle.getTopic()), quote(handle.getBrokerName()), quote(handle.getTimestampStr()),
            quote(handle.getMessageId())).toString();
    }

    static String map(Map<String, ?> found) {
        if (found == null) return "{}";
        List<String> cells = new ArrayList<>();
        new TreeMap<>(found).forEach((key, value) -> cells.add(quote(key) + ": " + value));
        return "{" + String.join(", ", cells) + "}";
    }

    static void line(String kind, String parts, Callable<String> call) {
        String result;
        try {
            result = ", \"result\": " + call.call();
        } catch (Exception refused) {
            result = "";
        }
        System.out.println("{\"kind\": " + quote(kind) + ", \"parts\": [" + parts + "]" + result + "}");
    }

    static long any(long[] of) { return of[CHANCE.nextInt(of.length)]; }

    static int any(int[] of) { return of[CHANCE.nextInt(of.length)]; }

    static String quote(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + '"';
    }
}
