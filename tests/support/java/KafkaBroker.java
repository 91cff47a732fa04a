import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka node, broker and controller, with Kafka's own clients beside it.
 *
 * <p>Arguments: a folder for its data, the broker's port, the controller's port, the port of clients
 * that log in: {@code writer} with {@code right} may do all, {@code guest} with {@code right} nothing.
 * Commands, a line each, are documented at the methods; keys and values are base64 behind a
 * {@code b}, or {@code -}: null.
 */
public final class KafkaBroker {
  private static final Duration PATIENCE = Duration.ofSeconds(20);

  private final Path folder;
  private final String servers;
  private final Properties properties = new Properties();
  private KafkaRaftServer server;
  private Admin admin;

  private KafkaBroker(Path folder, String brokerPort, String controllerPort, String loginPort) {
    this.folder = folder;
    this.servers = "127.0.0.1:" + brokerPort;
    String controller = "127.0.0.1:" + controllerPort;
    Map<String, String> settings = new HashMap<>();
    settings.put("process.roles", "broker,controller");
    settings.put("node.id", "1");
    settings.put("controller.quorum.voters", "1@" + controller);
    settings.put("controller.listener.names", "CONTROLLER");
    settings.put("inter.broker.listener.name", "BROKER");
    String login = ",LOGIN://127.0.0.1:" + loginPort;
    settings.put("listeners", "BROKER://" + servers + ",CONTROLLER://" + controller + login);
    String protocols = "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT";
    settings.put("listener.security.protocol.map", protocols);
    settings.put("sasl.enabled.mechanisms", "PLAIN");
    settings.put(
        "listener.name.login.plain.sasl.jaas.config",
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
            + " user_writer=\"right\" user_guest=\"right\";");
    settings.put(
        "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
    settings.put("super.users", "User:ANONYMOUS;User:writer");
    settings.put("log.dirs", folder.resolve("data").toString());
    settings.put("auto.create.topics.enable", "false");
    // Records have times of long ago; only what a test deletes may go.
    settings.put("log.retention.ms", "-1");
    settings.put("log.cleaner.backoff.ms", "50");
    settings.put("log.cleaner.dedupe.buffer.size", "2097152");
    settings.put("num.network.threads", "1");
    settings.put("num.io.threads", "2");
    properties.putAll(settings);
  }

  /** Answers commands until the input ends. */
  public static void main(String[] arguments) throws Exception {
    KafkaBroker broker =
        new KafkaBroker(Path.of(arguments[0]), arguments[1], arguments[2], arguments[3]);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      System.out.println("= " + broker.answer(line.split(" ")));
    }
    System.exit(0);
  }

  private String answer(String[] words) {
    try {
      switch (words[0]) {
        case "start" -> start();
        case "stop" -> stop();
        case "create" -> create(words);
        case "delete" -> admin.deleteTopics(List.of(words[1])).all().get();
        case "send" -> send(words);
        case "delete_records" -> deleteRecords(words);
        case "await_compaction" -> awaitCompaction(words);
        default -> throw new IllegalArgumentException(words[0]);
      }
      return "done";
    } catch (Exception problem) {
      return "failed " + problem;
    }
  }

  /** {@code start}: returns when it answers its clients. */
  private void start() throws Exception {
    if (!Files.exists(folder.resolve("data"))) {
      format();
    }
    server = new KafkaRaftServer(KafkaConfig.fromProps(properties, false), Time.SYSTEM);
    server.startup();
    admin = Admin.create(Map.<String, Object>of("bootstrap.servers", servers));
    admin.describeCluster().nodes().get();
  }

  private void format() throws Exception {
    Path file = folder.resolve("server.properties");
    try (var writer = Files.newBufferedWriter(file)) {
      properties.store(writer, null);
    }
    String cluster = Uuid.randomUuid().toString();
    String[] format = {"format", "--cluster-id", cluster, "--config", file.toString()};
    int failed = StorageTool.execute(format, new PrintStream(System.err));
    if (failed != 0) {
      throw new IllegalStateException("the storage could not be formatted");
    }
  }

  /** {@code stop}: the data stay. */
  private void stop() {
    admin.close(Duration.ZERO);
    server.shutdown();
    server.awaitShutdown();
  }

  /** {@code create TOPIC PARTITIONS [NAME=VALUE]...}: returns when the broker has it, too. */
  private void create(String[] words) throws Exception {
    Map<String, String> configuration = new HashMap<>();
    for (String word : Arrays.copyOfRange(words, 3, words.length)) {
      String[] sides = word.split("=", 2);
      configuration.put(sides[0], sides[1]);
    }
    NewTopic topic = new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1);
    admin.createTopics(List.of(topic.configs(configuration))).all().get();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    while (true) {
      try {
        endOffsets(words[1]);
        return;
      } catch (ExecutionException early) {
        if (System.nanoTime() > deadline) {
          throw early;
        }
        Thread.sleep(10);
      }
    }
  }

  /**
   * {@code send TOPIC [PARTITION KEY VALUE TIMESTAMP_MS]...}
   *
   * <p>A broker that took none of them in {@link #PATIENCE}, as one on a machine that stood still
   * may, is started again and asked once more; where it took some, that would double them.
   */
  private void send(String[] words) throws Exception {
    Map<TopicPartition, Long> before = endOffsets(words[1]);
    try {
      deliver(words);
    } catch (ExecutionException late) {
      boolean untouched = endOffsets(words[1]).equals(before);
      if (!untouched || !(late.getCause() instanceof TimeoutException)) {
        throw late;
      }
      stop();
      start();
      deliver(words);
    }
  }

  private void deliver(String[] words) throws Exception {
    ByteArraySerializer bytes = new ByteArraySerializer();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(sending(), bytes, bytes)) {
      List<Future<?>> sent = new ArrayList<>();
      for (int at = 2; at < words.length; at += 4) {
        int partition = Integer.parseInt(words[at]);
        long timestampMs = Long.parseLong(words[at + 3]);
        byte[] key = bytes(words[at + 1]);
        byte[] value = bytes(words[at + 2]);
        sent.add(producer.send(new ProducerRecord<>(words[1], partition, timestampMs, key, value)));
      }
      for (Future<?> one : sent) {
        one.get();
      }
    }
  }

  private Map<String, Object> sending() {
    String patience = String.valueOf(PATIENCE.toMillis());
    return Map.of(
        "bootstrap.servers", servers,
        "linger.ms", "0",
        "max.block.ms", patience,
        "request.timeout.ms", "5000",
        "delivery.timeout.ms", patience);
  }

  private Map<TopicPartition, Long> endOffsets(String topic) throws Exception {
    Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
    var described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    for (var one : described.partitions()) {
      ends.put(new TopicPartition(topic, one.partition()), OffsetSpec.latest());
    }
    Map<TopicPartition, Long> offsets = new HashMap<>();
    admin.listOffsets(ends).all().get().forEach((at, found) -> offsets.put(at, found.offset()));
    return offsets;
  }

  private static byte[] bytes(String word) {
    return word.equals("-") ? null : Base64.getDecoder().decode(word.substring(1));
  }

  /** {@code delete_records TOPIC PARTITION BEFORE_OFFSET} */
  private void deleteRecords(String[] words) throws Exception {
    TopicPartition partition = new TopicPartition(words[1], Integer.parseInt(words[2]));
    RecordsToDelete before = RecordsToDelete.beforeOffset(Long.parseLong(words[3]));
    admin.deleteRecords(Map.of(partition, before)).all().get();
  }

  /** {@code await_compaction TOPIC PARTITION}: until some offset is gone. */
  private void awaitCompaction(String[] words) throws Exception {
    TopicPartition partition = new TopicPartition(words[1], Integer.parseInt(words[2]));
    Map<String, Object> client = Map.of("bootstrap.servers", servers);
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    long deadline = System.nanoTime() + PATIENCE.toNanos();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(client, bytes, bytes)) {
      consumer.assign(List.of(partition));
      long end = consumer.endOffsets(List.of(partition)).get(partition);
      while (System.nanoTime() < deadline) {
        consumer.seekToBeginning(List.of(partition));
        long seen = 0;
        while (consumer.position(partition) < end) {
          seen += consumer.poll(Duration.ofMillis(100)).count();
        }
        if (seen < end) {
          return;
        }
        Thread.sleep(50);
      }
    }
    throw new IllegalStateException("nothing was compacted in " + PATIENCE);
  }
}
