// Writes one JSON line per message, batch, id, property text and compressed body, encoded by
// RocketMQ's own classes and decoded again by them. Run once per RocketMQ release:
//
//   java -cp 'rocketmq-5.5.0/lib/*' MessageVectors.java 5.5.0 java-messages.jsonl
//   java -cp 'rocketmq-4.9.7/lib/*' MessageVectors.java 4.9.7 java-messages.jsonl
//
// Lines are added to what the file holds already.

import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.compression.CompressorFactory;
import org.apache.rocketmq.common.message.*;

public class MessageVectors {
    static final Random random = new Random(20240611);
    static PrintStream out;
    static String version;
    static boolean five;

    static final String UNIQUE_ID = "0A01020311711B2A3C4D00ABCDEF0005";
    static final String[] CODECS = {"LZ4", "ZSTD", "ZLIB"};

    public static void main(String[] args) throws Exception {
        version = args[0];
        five = version.startsWith("5");
        out = new PrintStream(new FileOutputStream(args[1], true), false, "UTF-8");
        messages();
        if (five) {
            longTopics();
            innerBatches();
        }
        broken();
        batches();
        offsetIds();
        uniqueIds();
        propertyTexts();
        compressed();
        out.flush();
        System.exit(0);
    }

    // ---- JSON

    static String quote(String text) {
        if (text == null) return "null";
        StringBuilder json = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') json.append('\\').append(c);
            else if (c < 0x20 || c > 0x7e) json.append(String.format("\\u%04x", (int) c));
            else json.append(c);
        }
        return json.append('"').toString();
    }

    static String json(Object value) {
        if (value == null) return "null";
        if (value instanceof byte[]) return quote(hex((byte[]) value));
        if (value instanceof Number || value instanceof Boolean) return value.toString();
        if (value instanceof List) {
            StringJoiner parts = new StringJoiner(",", "[", "]");
            for (Object part : (List<?>) value) parts.add(json(part));
            return parts.toString();
        }
        if (value instanceof Map) {
            StringJoiner parts = new StringJoiner(",", "{", "}");
            for (Map.Entry<?, ?> part : ((Map<?, ?>) value).entrySet())
                parts.add(quote((String) part.getKey()) + ":" + json(part.getValue()));
            return parts.toString();
        }
        return quote(value.toString());
    }

    static String hex(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (byte b : bytes) digits.append(String.format("%02x", b));
        return digits.toString();
    }

    static Map<String, Object> line(String kind, String name) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("kind", kind);
        line.put("version", version);
        line.put("name", name);
        return line;
    }

    static Map<String, String> sorted(Map<String, String> properties) {
        return properties == null ? new TreeMap<>() : new TreeMap<>(properties);
    }

    static Map<String, Object> fields(MessageExt message) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("store_size", message.getStoreSize());
        fields.put("body_crc", message.getBodyCRC());
        fields.put("queue_id", message.getQueueId());
        fields.put("flag", message.getFlag());
        fields.put("queue_offset", message.getQueueOffset());
        fields.put("commit_log_offset", message.getCommitLogOffset());
        fields.put("sys_flag", message.getSysFlag());
        fields.put("born_timestamp_ms", message.getBornTimestamp());
        fields.put("born_host", host((InetSocketAddress) message.getBornHost()));
        fields.put("store_timestamp_ms", message.getStoreTimestamp());
        fields.put("store_host", host((InetSocketAddress) message.getStoreHost()));
        fields.put("reconsume_times", message.getReconsumeTimes());
        fields.put("prepared_transaction_offset", message.getPreparedTransactionOffset());
        fields.put("body", message.getBody() == null ? new byte[0] : message.getBody());
        fields.put("topic", message.getTopic());
        fields.put("properties", sorted(message.getProperties()));
        fields.put("tag", message.getTags());
        fields.put("keys", message.getKeys());
        fields.put("message_id", message.getMsgId());
        if (message instanceof MessageClientExt)
            fields.put("offset_message_id", ((MessageClientExt) message).getOffsetMsgId());
        return fields;
    }

    static List<Object> host(InetSocketAddress host) {
        return Arrays.asList(host.getAddress().getAddress(), host.getPort());
    }

    // ---- messages

    static InetSocketAddress address(String ip, int port) throws Exception {
        return new InetSocketAddress(InetAddress.getByName(ip), port);
    }

    static void fill(MessageExt message, boolean bornV6, boolean storeV6) throws Exception {
        message.setTopic("TopicA");
        message.setBody(bytes(random.nextInt(40) + 1));
        message.setQueueId(random.nextInt(16));
        message.setFlag(random.nextInt());
        message.setQueueOffset(random.nextLong() >>> 1);
        message.setCommitLogOffset(random.nextLong() >>> 1);
        message.setBornTimestamp(1700000000000L + random.nextInt());
        message.setStoreTimestamp(1700000000000L + random.nextInt());
        message.setBornHost(address(bornV6 ? "2001:db8::" + (1 + random.nextInt(9)) : "10.1.2.3", random.nextInt(65536)));
        message.setStoreHost(address(storeV6 ? "fe80::1:2:3" : "127.0.0.1", random.nextInt(65536)));
        message.setReconsumeTimes(random.nextInt(17));
        message.setPreparedTransactionOffset(random.nextLong() >>> 1);
        int sysFlag = new int[] {0, 4, 8, 12}[random.nextInt(4)] | (random.nextInt(4) == 0 ? 2 : 0);
        message.setSysFlag(sysFlag | (bornV6 ? 16 : 0) | (storeV6 ? 32 : 0));
        MessageAccessor.setProperties(message, new LinkedHashMap<>());
    }

    static byte[] bytes(int size) {
        byte[] bytes = new byte[size];
        random.nextBytes(bytes);
        return bytes;
    }

    static void put(MessageExt message, String... pairs) {
        for (int i = 0; i < pairs.length; i += 2) MessageAccessor.putProperty(message, pairs[i], pairs[i + 1]);
    }

    static void write(String name, MessageExt message, boolean compress) throws Exception {
        byte[] body = message.getBody();
        if (compress) {
            byte[] packed = CompressorFactory.getCompressor(
                CompressionType.findByValue(message.getSysFlag() >> 8 & 7)).compress(body, 5);
            message.setBodyCRC(UtilAll.crc32(packed));
            message.setBody(packed);
        } else {
            message.setBodyCRC(UtilAll.crc32(body));
        }
        writeRaw("message", name, MessageDecoder.encode(message, false));
    }

    static void writeRaw(String kind, String name, byte[] raw) {
        MessageExt decoded = MessageDecoder.clientDecode(ByteBuffer.wrap(raw), true);
        if (decoded == null) throw new IllegalStateException(name);
        Map<String, Object> line = line(kind, name);
        line.put("hex", raw);
        line.put("fields", fields(decoded));
        out.println(json(line));
    }

    static void messages() throws Exception {
        for (int hosts = 0; hosts < 4; hosts++) {
            for (int i = 0; i < 4; i++) {
                MessageExt message = new MessageExt();
                fill(message, (hosts & 1) != 0, (hosts & 2) != 0);
                if (i > 0) put(message, "TAGS", "Tag" + i, "KEYS", "k1 k" + i);
                if (i > 1) put(message, "UNIQ_KEY", UNIQUE_ID, "WAIT", "true", "CLUSTER", "DefaultCluster");
                if (i > 2) put(message, "a", "1\u00012", "größe", "ü", "中文", "標籤", "smile", "\ud83d\ude00", "", "no name", "empty", "");
                write("hosts " + hosts + ", properties " + i, message, false);
            }
        }
        MessageExt empty = new MessageExt();
        fill(empty, false, false);
        empty.setBody(new byte[0]);
        write("empty body", empty, false);

        MessageExt bare = new MessageExt();
        fill(bare, false, false);
        bare.setBody(new byte[0]);
        bare.setTopic("");
        write("nothing but a head", bare, false);

        MessageExt longest = new MessageExt();
        fill(longest, false, false);
        longest.setTopic("T".repeat(127));
        put(longest, "TAGS", "標籤", "pad", "x".repeat(32700));
        write("topic of 127 bytes, long properties", longest, false);

        MessageExt unicode = new MessageExt();
        fill(unicode, false, false);
        unicode.setTopic("中文");
        write("unicode topic", unicode, false);

        for (int codec = 0; codec <= 3; codec++) {
            for (int size : new int[] {1, 300, 9000}) {
                MessageExt message = new MessageExt();
                fill(message, false, false);
                StringBuilder text = new StringBuilder();
                while (text.length() < size) text.append("line ").append(random.nextInt(20)).append(' ');
                message.setBody(text.substring(0, size).getBytes(StandardCharsets.UTF_8));
                message.setSysFlag(message.getSysFlag() | 1 | codec << 8);
                write("codec " + codec + ", " + size + " bytes", message, true);
            }
        }
    }

    // The second magic is written by the store's encoder alone. It leaves both offsets to the store.
    static void longTopics() throws Exception {
        for (String topic : new String[] {"S", "T".repeat(127), "T".repeat(128), "%RETRY%" + "g".repeat(248), "中".repeat(50)}) {
            for (int hosts = 0; hosts < 4; hosts++) {
                Object inner = Class.forName("org.apache.rocketmq.common.message.MessageExtBrokerInner")
                    .getDeclaredConstructor().newInstance();
                MessageExt message = (MessageExt) inner;
                fill(message, (hosts & 1) != 0, (hosts & 2) != 0);
                message.setTopic(topic);
                message.setBodyCRC(UtilAll.crc32(message.getBody()));
                put(message, "TAGS", "TagV2", "KEYS", "k");
                inner.getClass().getMethod("setPropertiesString", String.class)
                    .invoke(inner, MessageDecoder.messageProperties2String(message.getProperties()));
                Class<?> versions = Class.forName("org.apache.rocketmq.common.message.MessageVersion");
                boolean longer = topic.getBytes(StandardCharsets.UTF_8).length > 127;
                inner.getClass().getMethod("setVersion", versions)
                    .invoke(inner, versions.getEnumConstants()[longer ? 1 : 0]);
                writeRaw("message", "store's encoder, topic of " + topic.length() + ", hosts " + hosts, storeEncoded(inner));
            }
        }
    }

    static byte[] storeEncoded(Object inner) throws Exception {
        Class<?> config = Class.forName("org.apache.rocketmq.store.config.MessageStoreConfig");
        Class<?> encoders = Class.forName("org.apache.rocketmq.store.MessageExtEncoder");
        Object encoder = encoders.getConstructor(config).newInstance(config.getDeclaredConstructor().newInstance());
        Object refused = encoders.getMethod("encode", inner.getClass()).invoke(encoder, inner);
        if (refused != null) throw new IllegalStateException(refused.toString());
        ByteBuffer buffer = (ByteBuffer) encoders.getMethod("getEncoderBuffer").invoke(encoder);
        byte[] raw = new byte[buffer.getInt(0)];
        buffer.get(raw);
        return raw;
    }

    static void innerBatches() throws Exception {
        Method unwrap = MessageDecoder.class.getMethod("decodeMessage", MessageExt.class, List.class);
        for (int codec = -1; codec <= 3; codec++) {
            MessageExt message = new MessageExt();
            fill(message, codec == 2, codec == 3);
            message.setReconsumeTimes(0);
            message.setPreparedTransactionOffset(0);
            byte[] body = MessageDecoder.encodeMessages(someMessages(5));
            message.setBody(body);
            message.setSysFlag(message.getSysFlag() & 48 | 64 | 128 | (codec < 0 ? 0 : 1 | codec << 8));
            put(message, "INNER_NUM", "5", "INNER_BASE", "7");
            if (codec >= 0) message.setBody(CompressorFactory.getCompressor(CompressionType.findByValue(codec)).compress(body, 5));
            message.setBodyCRC(UtilAll.crc32(message.getBody()));
            byte[] raw = MessageDecoder.encode(message, false);
            List<MessageExt> inner = new ArrayList<>();
            unwrap.invoke(null, MessageDecoder.clientDecode(ByteBuffer.wrap(raw), true), inner);
            List<Object> unwrapped = new ArrayList<>();
            for (MessageExt one : inner) unwrapped.add(fields(one));
            Map<String, Object> line = line("inner", "inner batch, codec " + codec);
            line.put("hex", raw);
            line.put("messages", unwrapped);
            out.println(json(line));
        }
    }

    // Each byte of one record replaced: what Java makes of it, and where it stops reading.
    static void broken() throws Exception {
        MessageExt message = new MessageExt();
        fill(message, false, false);
        message.setSysFlag(0);
        put(message, "TAGS", "TagA", "KEYS", "k1");
        message.setBodyCRC(UtilAll.crc32(message.getBody()));
        byte[] whole = MessageDecoder.encode(message, false);
        for (int at = 0; at < whole.length; at++) {
            for (int flip : new int[] {0x01, 0xff}) {
                byte[] raw = whole.clone();
                raw[at] ^= (byte) flip;
                ByteBuffer buffer = ByteBuffer.wrap(raw);
                MessageExt decoded = null;
                try {
                    decoded = MessageDecoder.clientDecode(buffer, true);
                } catch (Throwable t) {
                    // some releases let errors about sizes through
                }
                Map<String, Object> line = line("broken", "byte " + at + " ^ " + flip);
                line.put("hex", raw);
                line.put("consumed", decoded == null ? -1 : buffer.position());
                line.put("fields", decoded != null && buffer.position() == raw.length ? fields(decoded) : null);
                out.println(json(line));
            }
        }
    }

    // ---- batches

    static List<Message> someMessages(int count) {
        List<Message> messages = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = new Message("TopicA", i == 0 ? null : "Tag" + i, i == 1 ? null : "key " + i, bytes(random.nextInt(30) + 1));
            message.setFlag(random.nextInt());
            message.putUserProperty("größe", "ü" + i);
            message.getProperties().put("UNIQ_KEY", UNIQUE_ID.substring(0, 31) + i);
            messages.add(message);
        }
        return messages;
    }

    static void batches() throws Exception {
        for (int count : new int[] {0, 1, 2, 9}) {
            List<Message> messages = someMessages(count);
            byte[] raw = MessageDecoder.encodeMessages(messages);
            List<Object> entries = new ArrayList<>();
            for (Message message : MessageDecoder.decodeMessages(ByteBuffer.wrap(raw))) {
                Map<String, Object> entry = new LinkedHashMap<>();
                entry.put("flag", message.getFlag());
                entry.put("body", message.getBody());
                entry.put("properties", sorted(message.getProperties()));
                entries.add(entry);
            }
            Map<String, Object> line = line("batch", count + " messages");
            line.put("hex", raw);
            line.put("entries", entries);
            out.println(json(line));
        }
    }

    // ---- ids

    static void offsetIds() throws Exception {
        String[] ips = {"127.0.0.1", "255.255.255.255", "0.0.0.0", "::1", "2001:db8::1:2"};
        for (String ip : ips) {
            for (long offset : new long[] {0, 4096, Long.MAX_VALUE}) {
                int port = random.nextInt(65536);
                String id = MessageDecoder.createMessageId(address(ip, port), offset);
                MessageId decoded = MessageDecoder.decodeMessageId(id);
                Map<String, Object> line = line("offset id", ip);
                line.put("id", id);
                line.put("host", host((InetSocketAddress) decoded.getAddress()));
                line.put("offset", decoded.getOffset());
                out.println(json(line));
            }
        }
    }

    static void uniqueIds() throws Exception {
        String[] ids = {UNIQUE_ID, "00000000000000000000000000000000", "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            "20010DB80000000000000000000000012A3B18B4AAC200ABCDEF0005"};
        for (String id : ids) {
            Map<String, Object> line = line("unique id", id);
            line.put("ip", MessageClientIDSetter.getIPFromID(id));
            line.put("pid", MessageClientIDSetter.getPidFromID(id));
            out.println(json(line));
        }
    }

    // ---- properties

    static void propertyTexts() throws Exception {
        String[][] sets = {{}, {"KEYS", "k1 k2", "TAGS", "TagA", "N", null, "E", ""}, {"a", "1\u00012"},
            {"größe", "ü", "中文", "\ud83d\ude00"}, {"N", null}};
        for (String[] set : sets) {
            Map<String, String> properties = new LinkedHashMap<>();
            List<Object> pairs = new ArrayList<>();
            for (int i = 0; i < set.length; i += 2) {
                properties.put(set[i], set[i + 1]);
                pairs.add(Arrays.asList(set[i], set[i + 1]));
            }
            String text = MessageDecoder.messageProperties2String(properties);
            Map<String, Object> line = line("written properties", text);
            line.put("pairs", pairs);
            line.put("hex", text.getBytes(StandardCharsets.UTF_8));
            out.println(json(line));
        }
        List<byte[]> texts = new ArrayList<>();
        for (String text : new String[] {"", "A\u00011\u0002B\u00012\u0002", "A\u00011\u0002B\u00012", "A\u0001\u0002B\u00012", "\u00011\u0002B\u00012",
            "A\u0002B\u00012", "A\u00011\u00012\u0002", "AB", "\u0001", "\u0002", "\u0002\u0002", "\u0001\u0001\u0001", "A\u0001\u0001", "A\u00011\u0002A\u00012\u0002",
            "A\u00011\u0002A\u0001\u0002", "A\u0001\u00011\u0002", "ü\u0001é", "A B\u0001 c \u0002"})
            texts.add(text.getBytes(StandardCharsets.UTF_8));
        for (int i = 0; i < 400; i++) {
            byte[] text = new byte[random.nextInt(14)];
            byte[] alphabet = {1, 1, 2, 2, 'A', 'B', 'A', ' ', (byte) 0xc3, (byte) 0xa4, (byte) 0xf0, (byte) 0x9f, (byte) 0xe4, (byte) 0x80};
            for (int k = 0; k < text.length; k++) text[k] = alphabet[random.nextInt(i < 300 ? 8 : alphabet.length)];
            texts.add(text);
        }
        for (byte[] text : texts) {
            Map<String, Object> line = line("read properties", "");
            line.put("hex", text);
            line.put("properties", sorted(MessageDecoder.string2messageProperties(new String(text, StandardCharsets.UTF_8))));
            out.println(json(line));
        }
    }

    // ---- compression

    static void compressed() throws Exception {
        for (String codec : CODECS) {
            for (int size : new int[] {0, 1, 64, 1000, 70000}) {
                for (boolean varied : new boolean[] {false, true}) {
                    byte[] body = new byte[size];
                    Arrays.fill(body, (byte) 'a');
                    if (varied && size <= 1000) random.nextBytes(body);
                    byte[] packed = CompressorFactory.getCompressor(CompressionType.of(codec)).compress(body, 5);
                    Map<String, Object> line = line("compressed", codec);
                    line.put("body", size <= 1000 ? body : null);
                    line.put("size", size);
                    line.put("packed", packed);
                    out.println(json(line));
                }
            }
        }
    }
}
