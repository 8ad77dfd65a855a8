import org.apache.rocketmq.broker.BrokerStartup;
import org.apache.rocketmq.namesrv.NamesrvStartup;

/**
 * A name server and then a broker in one process, each with its file of settings. Each is what its own
 * process would run; only one Java has to start and to load what both use.
 */
public class NamesAndBroker {
    public static void main(String[] args) {
        NamesrvStartup.main0(new String[] {"-c", args[0]});
        BrokerStartup.main(new String[] {"-c", args[1]});
    }
}
