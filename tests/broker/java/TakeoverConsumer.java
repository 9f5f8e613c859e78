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
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * The Parallel Consumer as a team would run it: key order, many at once, commits with metadata.
 *
 * <p>Arguments: bootstrap, group, topic, concurrency, longest work in milliseconds, file. Each record adds two lines to
 * the file, {@code start PARTITION OFFSET} before its work and {@code done PARTITION OFFSET} after it. SIGTERM closes it
 * without draining what is queued: what was begun is finished, and the rest stays incomplete in the commit.
 */
final class TakeoverConsumer {
    public static void main(String[] arguments) throws Exception {
        int workMaxMs = Integer.parseInt(arguments[4]);
        FileChannel file = FileChannel.open(
                Path.of(arguments[5]), StandardOpenOption.CREATE, StandardOpenOption.WRITE, StandardOpenOption.APPEND);
        ParallelStreamProcessor<byte[], byte[]> processor = ParallelStreamProcessor.createEosStreamProcessor(
                ParallelConsumerOptions.<byte[], byte[]>builder()
                        .consumer(new KafkaConsumer<>(
                                properties(arguments[0], arguments[1]),
                                new ByteArrayDeserializer(),
                                new ByteArrayDeserializer()))
                        .ordering(ProcessingOrder.KEY)
                        .maxConcurrency(Integer.parseInt(arguments[3]))
                        .commitMode(CommitMode.PERIODIC_CONSUMER_SYNC)
                        .commitInterval(Duration.ofMillis(200))
                        .build());
        Runtime.getRuntime().addShutdownHook(new Thread(processor::closeDontDrainFirst, "close"));
        processor.subscribe(List.of(arguments[2]));
        processor.poll(context -> {
            RecordContext<byte[], byte[]> record = context.getSingleRecord();
            String at = " " + record.partition() + " " + record.offset() + "\n";
            append(file, "start" + at);
            try {
                Thread.sleep(ThreadLocalRandom.current().nextInt(workMaxMs + 1));
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("interrupted", stopped);
            }
            append(file, "done" + at);
        });
    }

    private static void append(FileChannel file, String line) {
        try {
            file.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.US_ASCII)));
        } catch (java.io.IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    private static Properties properties(String bootstrap, String group) {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", bootstrap);
        properties.setProperty("group.id", group);
        properties.setProperty("auto.offset.reset", "earliest");
        properties.setProperty("enable.auto.commit", "false");
        return properties;
    }
}
