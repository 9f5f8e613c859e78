import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.CommitMode;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelStreamProcessor;
import io.confluent.parallelconsumer.RecordContext;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.channels.FileChannel;
import java.nio.ByteBuffer;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The Parallel Consumer as a team would run it: key order, many at once, commits with metadata.
 *
 * <p>Arguments: bootstrap, group, topic, concurrency, shortest and longest work in milliseconds, history, member,
 * incarnation, commit mode, and further settings of the client as {@code name=value}. Each record adds two lines to the history, {@code S} before its work and {@code E} after it, as
 * {@code tests/support/history.py} writes them; keys are of letters, digits, dots, dashes, underscores and tildes. SIGTERM
 * closes it without draining what is queued: what was begun is finished, and the rest stays incomplete in the commit.
 */
final class TakeoverConsumer {
    public static void main(String[] arguments) throws Exception {
        int workMinMs = Integer.parseInt(arguments[4]);
        int workMaxMs = Integer.parseInt(arguments[5]);
        FileChannel history = FileChannel.open(
                Path.of(arguments[6]), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        String life = arguments[7] + " " + arguments[8] + " ";
        ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .consumer(new KafkaConsumer<>(
                                properties(arguments),
                                new ByteArrayDeserializer(),
                                new ByteArrayDeserializer()))
                        .ordering(ProcessingOrder.KEY)
                        .maxConcurrency(Integer.parseInt(arguments[3]))
                        .commitMode(CommitMode.valueOf(arguments[9]))
                        .commitInterval(Duration.ofMillis(200))
                        .build());
        Runtime.getRuntime().addShutdownHook(new Thread(processor::closeDontDrainFirst, "close"));
        processor.subscribe(List.of(arguments[2]));
        processor.poll(context -> {
            RecordContext<byte[], byte[]> record = context.getSingleRecord();
            String call = life + record.topic() + " " + record.partition() + " " + record.offset() + " ";
            append(history, "S " + call + keyWord(record.key()));
            try {
                Thread.sleep(ThreadLocalRandom.current().nextInt(workMinMs, workMaxMs + 1));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted", stopped);
            }
            append(history, "E " + call + "done");
        });
    }

    private static String keyWord(byte[] key) {
        return key == null ? "-" : "=" + new String(key, StandardCharsets.US_ASCII);
    }

    /** Adds one line in one write; on Linux the JVM's nanoTime is the monotonic clock that every process shares. */
    private static void append(FileChannel history, String line) {
        try {
            String whole = line + " " + System.nanoTime() + "\n";
            history.write(ByteBuffer.wrap(whole.getBytes(StandardCharsets.US_ASCII)));
        } catch (java.io.IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    private static Properties properties(String[] arguments) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", arguments[0]);
        properties.setProperty("group.id", arguments[1]);
        properties.setProperty("client.id", arguments[7]);
        properties.setProperty("auto.offset.reset", "earliest");
        properties.setProperty("enable.auto.commit", "false");
        for (String setting : Arrays.asList(arguments).subList(10, arguments.length)) {
            String[] words = setting.split("=", 2);
            properties.setProperty(words[0], words[1]);
        }
        return properties;
    }
}
