import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** Runs mqadmin commands, one a line of standard input, each followed by a line "#done". */
public class Admin {
    public static void main(String[] args) throws Exception {
        Awake.start();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = input.readLine()) != null) {
            try {
                MQAdminStartup.main0(line.trim().split(" +"), null);
            } catch (Throwable problem) {
                problem.printStackTrace(System.out);
            }
            System.out.println();
            System.out.println("#done");
            System.out.flush();
        }
        System.exit(0);
    }
}
