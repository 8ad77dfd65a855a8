// Writes one JSON line per RocketMQ body class: the JSON that Java itself makes of a fresh instance
// and of instances whose every field is filled. Run once per RocketMQ release:
//
//   java -cp 'rocketmq-5.5.0/lib/*' BodyVectors.java 5.5.0 >> java-bodies.jsonl
//   java -cp 'rocketmq-4.9.7/lib/*' BodyVectors.java 4.9.7 >> java-bodies.jsonl

import java.io.PrintStream;
import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;

public class BodyVectors {
    static final int DEEPEST = 6;
    static int counter;
    static boolean edges;
    static PrintStream out;
    static String release;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, true, "UTF-8");
        release = args[0];
        System.setOut(System.err);  // some classes log where they are made
        String remoting = "org.apache.rocketmq.remoting.protocol.";
        String common = "org.apache.rocketmq.common.";
        Method toJson = Class.forName(remoting + "RemotingSerializable").getMethod("toJson", Object.class, boolean.class);
        for (String name : NAMES) {
            for (String prefix : new String[] {remoting, common, common + "protocol.", "org.apache.rocketmq."}) {
                Class<?> type;
                try {
                    type = Class.forName(prefix + name);
                } catch (ClassNotFoundException e) {
                    continue;
                }
                for (String variant : new String[] {"fresh", "full", "edges", "pretty"}) {
                    counter = 0;
                    edges = variant.equals("edges");
                    Object value = create(type);
                    if (!variant.equals("fresh")) fill(value, 0);
                    line(type.getSimpleName(), variant, "json", (String) toJson.invoke(null, value, variant.equals("pretty")));
                }
                break;
            }
        }
        compressedRegistration();
        timerCheckpoint();
        sharedSubscription(toJson);
        properties();
    }

    static void line(String name, String variant, String kind, String text) {
        out.println("{\"release\":" + quote(release) + ",\"name\":" + quote(name) + ",\"variant\":" + quote(variant)
            + ",\"" + kind + "\":" + quote(text) + "}");
    }

    static Class<?> find(String... names) throws ClassNotFoundException {
        for (String name : names) {
            try {
                return Class.forName("org.apache.rocketmq." + name);
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new ClassNotFoundException(names[0]);
    }

    /** The compressed form of a registration, beside the same value as JSON. */
    static void compressedRegistration() throws Exception {
        Class<?> type = find("remoting.protocol.body.RegisterBrokerBody", "common.protocol.body.RegisterBrokerBody");
        counter = 0;
        edges = false;
        Object body = create(type);
        fill(body, 0);
        Object wrapper = type.getMethod("getTopicConfigSerializeWrapper").invoke(body);
        Map table = (Map) wrapper.getClass().getMethod("getTopicConfigTable").invoke(wrapper);
        table.clear();
        Constructor<?> config = find("common.TopicConfig").getConstructor(String.class, int.class, int.class, int.class);
        for (int i = 0; i < 3; i++) table.put("Topic" + i, config.newInstance("Topic" + i, 4 + i, 8 + i, 6));
        line("RegisterBrokerBody", "registration", "json", body.getClass().getMethod("toJson").invoke(body).toString());
        line("RegisterBrokerBody", "compressed", "hex", hex((byte[]) type.getMethod("encode", boolean.class).invoke(body, true)));
    }

    static void timerCheckpoint() throws Exception {
        try {
            Class<?> type = find("store.timer.TimerCheckpoint");
            counter = 0;
            Object value = create(type);
            fill(value, 0);
            Object buffer = type.getMethod("encode", type).invoke(null, value);
            line("TimerCheckpoint", "full", "hex", hex(((java.nio.ByteBuffer) buffer).array()));
        } catch (ClassNotFoundException e) {
            System.err.println("no timer in this release");
        }
    }

    /** A heartbeat whose two groups share one subscription object; fastjson 1.x writes a reference. */
    static void sharedSubscription(Method toJson) throws Exception {
        Class<?> type = find("remoting.protocol.heartbeat.HeartbeatData", "common.protocol.heartbeat.HeartbeatData");
        counter = 0;
        Object heartbeat = create(type);
        fill(heartbeat, 0);
        Set shared = new LinkedHashSet();
        for (Object consumer : (Set) type.getMethod("getConsumerDataSet").invoke(heartbeat)) {
            Set own = (Set) consumer.getClass().getMethod("getSubscriptionDataSet").invoke(consumer);
            if (shared.isEmpty()) shared.addAll(own);
            else { own.clear(); own.addAll(shared); }
        }
        line("HeartbeatData", "shared", "json", (String) toJson.invoke(null, heartbeat, false));
    }

    /** Configuration texts, and what Java reads in them. */
    static void properties() throws Exception {
        Method read = find("common.MixAll").getMethod("string2Properties", String.class);
        String[] texts = {
            "a=1\nb = 2\n c:3\nd 4\ne\n", "# x=1\n! y=2\n\n  \t\nz=3", "k\\=1=v\\=2\n", "a=b\\\n   c\nd=e\\\r\n\tf\n",
            "path=C:\\\\store\\\\x\n", "raw=C:\\store\n", "u=\\u4E2D\\u0041\\t|\\n|\\r|\\f|\\q\n", "spaces=  a b  \n",
            "a=1\rb=2\r\nc=3", "ke\\\n   y=1\n", "# comment\\\nx=1\n", "a==b\nc=:d\ne:=f\n", "x=1\nx=2\n", "tail=1\\", "=v\n", "\\ lead=\\ v\n",
        };
        for (String text : texts) {
            StringBuilder json = new StringBuilder("{");
            for (Map.Entry<Object, Object> each : new TreeMap<>((Properties) read.invoke(null, text)).entrySet()) {
                if (json.length() > 1) json.append(',');
                json.append(quote((String) each.getKey())).append(':').append(quote((String) each.getValue()));
            }
            out.println("{\"release\":" + quote(release) + ",\"name\":\"Properties\",\"text\":" + quote(text) + ",\"read\":" + json + "}}");
        }
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte each : bytes) text.append(String.format("%02x", each));
        return text.toString();
    }

    static Object create(Class<?> type) throws Exception {
        Constructor<?> chosen = null;
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            if (Arrays.asList(each.getParameterTypes()).contains(type)) continue;
            if (chosen == null || each.getParameterCount() < chosen.getParameterCount()) chosen = each;
        }
        chosen.setAccessible(true);
        Object[] parameters = new Object[chosen.getParameterCount()];
        for (int i = 0; i < parameters.length; i++) parameters[i] = sample(chosen.getGenericParameterTypes()[i], "arg", 1);
        return chosen.newInstance(parameters);
    }

    static void fill(Object value, int depth) throws Exception {
        for (Class<?> type = value.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                int modifiers = field.getModifiers();
                if (Modifier.isStatic(modifiers) || Modifier.isTransient(modifiers)) continue;
                field.setAccessible(true);
                Object sample = sample(field.getGenericType(), field.getName(), depth + 1);
                if (sample == null) continue;
                Object current = field.get(value);
                if (Modifier.isFinal(modifiers) && current instanceof Map) ((Map) current).putAll((Map) sample);
                else if (Modifier.isFinal(modifiers) && current instanceof Collection) ((Collection) current).addAll((Collection) sample);
                else field.set(value, sample);
            }
        }
    }

    static Object sample(Type type, String name, int depth) throws Exception {
        Class<?> raw = type instanceof ParameterizedType ? (Class<?>) ((ParameterizedType) type).getRawType()
            : type instanceof Class ? (Class<?>) type : Object.class;
        Type[] arguments = type instanceof ParameterizedType ? ((ParameterizedType) type).getActualTypeArguments() : new Type[0];
        counter++;
        if (raw == String.class) return edges ? "é中😀\u2028\"\\/\n\u0001\u007f" + counter : name + "-" + counter;
        if (raw == int.class || raw == Integer.class) return edges ? Integer.MIN_VALUE + counter : counter;
        if (raw == short.class || raw == Short.class) return (short) (edges ? Short.MIN_VALUE + counter : counter);
        if (raw == long.class || raw == Long.class) return edges ? Long.MAX_VALUE - counter : 1700000000000L + counter;
        if (raw == double.class || raw == Double.class) return edges ? (counter % 3 == 0 ? Double.NaN : counter % 3 == 1 ? 1e-7 : 1.5e300) : counter + 0.25;
        if (raw == float.class || raw == Float.class) return edges ? (counter % 2 == 0 ? Float.NaN : 1e-7f) : counter + 0.25f;
        if (raw == boolean.class || raw == Boolean.class) return counter % 2 == 0;
        if (raw == AtomicLong.class) return new AtomicLong(edges ? -counter : counter);
        if (raw == AtomicInteger.class) return new AtomicInteger(counter);
        if (raw == byte[].class) return null;
        if (raw == long[].class) return new long[] {1000L + counter, 2000L + counter};
        if (raw == BitSet.class) { BitSet bits = new BitSet(); bits.set(1); bits.set(70); return bits; }
        if (raw.isEnum()) { Object[] all = raw.getEnumConstants(); return all[counter % all.length]; }
        if (depth > DEEPEST) return null;
        if (Map.class.isAssignableFrom(raw)) {
            Map<Object, Object> map = raw == SortedMap.class || raw == TreeMap.class ? new TreeMap<>()
                : raw == ConcurrentMap.class || raw == ConcurrentHashMap.class ? new ConcurrentHashMap<>()
                : raw == HashMap.class ? new HashMap<>() : raw == Properties.class ? new Properties() : new LinkedHashMap<>();
            Type keys = arguments.length == 2 ? arguments[0] : String.class;
            Type values = arguments.length == 2 ? arguments[1] : String.class;
            for (int i = 0; i < 2; i++) {
                Object item = sample(values, name, depth + 1);
                if (item != null) map.put(sample(keys, name, depth + 1), item);
            }
            return map;
        }
        if (Collection.class.isAssignableFrom(raw)) {
            Collection<Object> many = SortedSet.class.isAssignableFrom(raw) ? new TreeSet<>()
                : Set.class.isAssignableFrom(raw) ? new LinkedHashSet<>()
                : raw == LinkedList.class ? new LinkedList<>() : new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                Object item = sample(arguments.length == 1 ? arguments[0] : String.class, name, depth + 1);
                if (item != null) many.add(item);
            }
            return many;
        }
        if (raw.getName().startsWith("org.apache.rocketmq.") && !Modifier.isAbstract(raw.getModifiers())) {
            Object value = create(raw);
            fill(value, depth);
            return value;
        }
        return null;
    }

    static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') quoted.append('\\').append(c);
            else if (c < ' ' || c > '~') quoted.append(String.format("\\u%04x", (int) c));
            else quoted.append(c);
        }
        return quoted.append('"').toString();
    }

    static final String[] NAMES = {
        "DataVersion", "TopicConfig", "subscription.SubscriptionGroupConfig", "subscription.GroupForbidden",
        "PlainAccessConfig", "AclConfig",
        "heartbeat.HeartbeatData", "heartbeat.ConsumerData", "heartbeat.ProducerData", "heartbeat.SubscriptionData",
        "route.BrokerData", "route.QueueData", "route.TopicRouteData",
        "admin.ConsumeStats", "admin.OffsetWrapper", "admin.TopicOffset", "admin.TopicStatsTable",
        "statictopic.LogicQueueMappingItem", "statictopic.TopicQueueMappingDetail", "statictopic.TopicQueueMappingInfo",
        "statictopic.TopicConfigAndQueueMapping", 
        "topic.OffsetMovedEvent", "EpochEntry",
        "body.AclInfo", "body.BatchAck", "body.BatchAckMessageRequestBody", "body.BrokerMemberGroup",
        "body.BrokerReplicasInfo", "body.BrokerStatsData", "body.BrokerStatsItem", "body.CheckClientRequestBody",
        "body.ClusterInfo", "body.Connection", "body.ConsumeByWho", "body.ConsumeMessageDirectlyResult",
        "body.ConsumeQueueData", "body.ConsumeStatsList", "body.ConsumeStatus", "body.ConsumerConnection",
        "body.ConsumerOffsetSerializeWrapper", "body.ConsumerRunningInfo", "body.CreateTopicListRequestBody",
        "body.ElectMasterResponseBody", "body.EpochEntryCache", "body.GetBrokerLiteInfoResponseBody",
        "body.GetBrokerMemberGroupResponseBody", "body.GetConsumerStatusBody", "body.GetLiteClientInfoResponseBody",
        "body.GetLiteGroupInfoResponseBody", "body.GetLiteTopicInfoResponseBody", "body.GetParentTopicInfoResponseBody",
        "body.GroupList", "body.HARuntimeInfo", "body.KVTable", "body.LiteSubscriptionCtlRequestBody",
        "body.LockBatchRequestBody", "body.LockBatchResponseBody", "body.MessageRequestModeSerializeWrapper",
        "body.PopProcessQueueInfo", "body.ProcessQueueInfo", "body.ProducerConnection", "body.ProducerInfo",
        "body.ProducerTableInfo", "body.QueryAssignmentRequestBody", "body.QueryAssignmentResponseBody",
        "body.QueryConsumeQueueResponseBody", "body.QueryConsumeTimeSpanBody", "body.QueryCorrectionOffsetBody",
        "body.QuerySubscriptionResponseBody", "body.QueueTimeSpan", "body.RegisterBrokerBody", "body.ResetOffsetBody",
        "body.ResetOffsetBodyForC", "body.SetMessageRequestModeRequestBody",
        "body.SubscriptionGroupList", "body.SubscriptionGroupWrapper", "body.SyncStateSet",
        "body.TopicConfigAndMappingSerializeWrapper", "body.TopicConfigSerializeWrapper", "body.TopicList",
        "body.UnlockBatchRequestBody", "body.UserInfo",
        "message.MessageQueue", "message.MessageQueueAssignment", "message.MessageQueueForC",
        "CheckRocksdbCqWriteResult", "lite.LiteSubscriptionDTO", "lite.LiteLagInfo",
        "store.schedule.DelayOffsetSerializeWrapper", "broker.schedule.DelayOffsetSerializeWrapper",
        "header.GetConsumerListByGroupResponseBody", "store.timer.TimerMetrics$TimerMetricsSerializeWrapper",
        "store.timer.TimerMetrics$Metric",
    };
}
