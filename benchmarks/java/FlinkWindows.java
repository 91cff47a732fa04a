import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Windows by Flink's SQL, in a cluster within this process, on records held in arrays.
 *
 * <p>Arguments: the parallelism. Commands: {@code load FILE} (keys, times and values, 64-bit
 * little-endian, column after column), {@code run MODE SQL} (into a sink that drops everything;
 * answers the seconds) and {@code answer MODE SQL} (answers the one row).
 */
public final class FlinkWindows {
  private static long[] keys = {};
  private static long[] times = {};
  private static long[] values = {};

  private FlinkWindows() {}

  /** Gives a record by its number; the arrays are not shipped, since all runs in this process. */
  public static final class Records implements GeneratorFunction<Long, Row> {
    @Override
    public Row map(Long number) {
      int index = number.intValue();
      int nanos = (int) Math.floorMod(times[index], 1000L) * 1_000_000;
      long second = Math.floorDiv(times[index], 1000L);
      LocalDateTime time = LocalDateTime.ofEpochSecond(second, nanos, ZoneOffset.UTC);
      return Row.of(keys[index], time, values[index], times[index]);
    }
  }

  /** Answers commands until the input ends. */
  public static void main(String[] arguments) throws Exception {
    int parallelism = Integer.parseInt(arguments[0]);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ", 3);
      switch (words[0]) {
        case "load" -> {
          load(Path.of(line.substring("load ".length())));
          System.out.println("= " + keys.length);
        }
        case "run" -> System.out.println("= " + run(tables(words[1], parallelism), words[2]));
        case "answer" -> System.out.println("= " + answer(tables(words[1], parallelism), words[2]));
        default -> throw new IllegalArgumentException(line);
      }
    }
  }

  private static double run(StreamTableEnvironment tables, String sql) throws Exception {
    tables.executeSql(
        "CREATE TEMPORARY TABLE dropped (k BIGINT, window_end_ms BIGINT, n BIGINT, s BIGINT,"
            + " m BIGINT) WITH ('connector' = 'blackhole')");
    long began = System.nanoTime();
    tables.executeSql("INSERT INTO dropped " + sql).await();
    return (System.nanoTime() - began) / 1e9;
  }

  private static String answer(StreamTableEnvironment tables, String sql) throws Exception {
    String last = "";
    try (CloseableIterator<Row> rows = tables.executeSql(sql).collect()) {
      while (rows.hasNext()) {
        Row row = rows.next();
        last =
            IntStream.range(0, row.getArity())
                .mapToObj(field -> String.valueOf(row.getField(field)))
                .collect(Collectors.joining(" "));
      }
    }
    return last;
  }

  private static StreamTableEnvironment tables(String mode, int parallelism) {
    Configuration configuration = new Configuration();
    configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(1024));
    configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(256));
    configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(256));
    StreamExecutionEnvironment environment =
        StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
    environment.setRuntimeMode(RuntimeExecutionMode.valueOf(mode));
    environment.getConfig().enableObjectReuse();
    TypeInformation<Row> type =
        Types.ROW_NAMED(
            new String[] {"k", "ts", "v", "ms"},
            Types.LONG,
            Types.LOCAL_DATE_TIME,
            Types.LONG,
            Types.LONG);
    DataGeneratorSource<Row> source =
        new DataGeneratorSource<>(new Records(), keys.length, type);
    DataStream<Row> stream =
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "records", type);
    StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
    tables.getConfig().set("table.local-time-zone", "UTC");
    // No watermark before the end: records come in no order, and none may be late.
    Schema schema =
        Schema.newBuilder()
            .column("k", DataTypes.BIGINT())
            .column("ts", DataTypes.TIMESTAMP(3))
            .column("v", DataTypes.BIGINT())
            .column("ms", DataTypes.BIGINT())
            .watermark("ts", "ts - INTERVAL '99' DAY")
            .build();
    tables.createTemporaryView("records", stream, schema);
    return tables;
  }

  private static void load(Path file) throws Exception {
    try (FileChannel channel = FileChannel.open(file)) {
      int records = (int) (channel.size() / (3 * Long.BYTES));
      keys = read(channel, 0, records);
      times = read(channel, 1, records);
      values = read(channel, 2, records);
    }
  }

  private static long[] read(FileChannel channel, int column, int records) throws Exception {
    long[] numbers = new long[records];
    long bytes = (long) records * Long.BYTES;
    ByteBuffer mapped = channel.map(FileChannel.MapMode.READ_ONLY, column * bytes, bytes);
    mapped.order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(numbers);
    return numbers;
  }
}
