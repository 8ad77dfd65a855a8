import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.action.RocketMQAction;
import org.apache.rocketmq.common.resource.RocketMQResource;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.RequestHeaderRegistry;

/** Prints what requests need by the annotations of their headers: code, name, resource, actions, fields. */
public class RequestNeeds {
    public static void main(String[] args) throws Exception {
        RequestHeaderRegistry registry = RequestHeaderRegistry.getInstance();
        registry.initialize();
        Map<Integer, String> names = new TreeMap<>();
        for (Field field : RequestCode.class.getFields()) {
            names.put(field.getInt(null), field.getName());
        }
        for (Map.Entry<Integer, String> code : names.entrySet()) {
            Class<?> header = registry.getRequestHeader(code.getKey());
            if (header == null) {
                continue;
            }
            RocketMQAction needed = header.getAnnotation(RocketMQAction.class);
            StringBuilder fields = new StringBuilder();
            for (Field field : header.getDeclaredFields()) {
                RocketMQResource resource = field.getAnnotation(RocketMQResource.class);
                if (resource != null) {
                    fields.append(" ").append(field.getName()).append(":").append(resource.value());
                }
            }
            System.out.println(code.getKey() + " " + code.getValue() + " " + needed.resource() + " "
                + Arrays.toString(needed.action()).replace(", ", ",") + fields);
        }
    }
}
