import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Sliding windows by Kafka Streams' topology test driver: one thread, no broker, its default
 * store (RocksDB): in the one in memory a search for a key's windows passes those of all keys.
 * Records are put in the order of their times, which is its best case.
 *
 * <p>Commands: {@code load FILE DIFFERENCE_MS} (see FlinkWindows), {@code run} (answers the
 * seconds) and {@code answer} (answers the fields of the benchmark's Answer).
 */
public final class KafkaWindows {
  private static final String STORE = "windows";
  private static final Serializer<long[]> WRITE =
      (topic, numbers) -> {
        ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Long.BYTES);
        LongStream.of(numbers).forEach(bytes::putLong);
        return bytes.array();
      };
  private static final Deserializer<long[]> READ =
      (topic, bytes) -> {
        if (bytes == null) {
          return null;
        }
        long[] numbers = new long[bytes.length / Long.BYTES];
        ByteBuffer.wrap(bytes).asLongBuffer().get(numbers);
        return numbers;
      };
  private static final Serde<long[]> AGGREGATES = Serdes.serdeFrom(WRITE, READ);

  private static List<long[]> records = List.of();
  private static long differenceMs;

  private KafkaWindows() {}

  /** Answers commands until the input ends. */
  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "load" -> {
          differenceMs = Long.parseLong(words[1]);
          load(Path.of(line.split(" ", 3)[2]));
          System.out.println("= " + records.size());
        }
        case "run" -> {
          long began = System.nanoTime();
          try (TopologyTestDriver driver = windowed()) {
            System.out.println("= " + (System.nanoTime() - began) / 1e9);
          }
        }
        case "answer" -> {
          try (TopologyTestDriver driver = windowed()) {
            System.out.println("= " + sums(driver));
          }
        }
        default -> throw new IllegalArgumentException(line);
      }
    }
  }

  /** A driver that has taken every record. */
  private static TopologyTestDriver windowed() {
    // What is kept covers all event times, so that the answer can be read at the end.
    Duration kept = Duration.ofDays(30).plusMillis(2 * differenceMs);
    Duration difference = Duration.ofMillis(differenceMs);
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("records", Consumed.with(Serdes.Long(), Serdes.Long()))
        .groupByKey(Grouped.with(Serdes.Long(), Serdes.Long()))
        .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(difference, difference))
        .aggregate(
            () -> new long[] {0, 0, Long.MIN_VALUE},
            (key, value, so) -> new long[] {so[0] + 1, so[1] + value, Math.max(so[2], value)},
            Materialized.<Long, long[]>as(
                    Stores.persistentTimestampedWindowStore(STORE, kept, difference, false))
                .withKeySerde(Serdes.Long())
                .withValueSerde(AGGREGATES)
                .withCachingDisabled()
                .withLoggingDisabled());
    Properties properties = new Properties();
    properties.put("application.id", "benchmark");
    properties.put("bootstrap.servers", "unused:1");
    TopologyTestDriver driver = new TopologyTestDriver(builder.build(), properties);
    TestInputTopic<Long, Long> topic =
        driver.createInputTopic("records", new LongSerializer(), new LongSerializer());
    for (long[] record : records) {
      topic.pipeInput(record[0], record[2], record[1]);
    }
    return driver;
  }

  private static String sums(TopologyTestDriver driver) {
    long[] sums = new long[8];
    WindowStore<Long, long[]> store = driver.getWindowStore(STORE);
    try (KeyValueIterator<Windowed<Long>, long[]> windows = store.all()) {
      while (windows.hasNext()) {
        KeyValue<Windowed<Long>, long[]> window = windows.next();
        long key = window.key.key();
        long endMs = window.key.window().start() + differenceMs;
        long weight = (endMs + 31 * key) % 1009;
        long[] of = window.value;
        long[] terms = {1, of[0], of[1], of[2], weight, weight * of[0], weight * of[1], weight * of[2]};
        IntStream.range(0, sums.length).forEach(field -> sums[field] += terms[field]);
      }
    }
    return LongStream.of(sums).mapToObj(String::valueOf).collect(Collectors.joining(" "));
  }

  private static void load(Path file) throws Exception {
    try (FileChannel channel = FileChannel.open(file)) {
      long bytes = channel.size();
      int count = (int) (bytes / (3 * Long.BYTES));
      ByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes);
      var numbers = mapped.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
      records = new ArrayList<>(count);
      for (int row = 0; row < count; row++) {
        records.add(
            new long[] {numbers.get(row), numbers.get(count + row), numbers.get(2 * count + row)});
      }
      records.sort(Comparator.comparingLong(record -> record[1]));
    }
  }
}
