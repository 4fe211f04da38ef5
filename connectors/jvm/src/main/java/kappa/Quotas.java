package kappa;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/**
 * The quotas of Kafka's users, which librdkafka can't ask for or change: a program for connectors/kafka/quotas.py.
 *
 * <p>It reads JSON from its standard input, so that no password is in its command line: `connection`, settings of a
 * client, and `quotas`, numbers by Kafka's name of a quota by user. It writes what these users had before, in the same
 * form, as a line of JSON.
 */
public final class Quotas {

  private static final ObjectMapper JSON = new ObjectMapper();

  private Quotas() {}

  public static void main(String[] arguments) throws IOException, ExecutionException, InterruptedException {
    JsonNode asked = JSON.readTree(System.in);
    Map<String, Object> connection = new HashMap<>();
    asked.get("connection").properties().forEach(one -> connection.put(one.getKey(), one.getValue().asText()));
    try (Admin admin = Admin.create(connection)) {
      ObjectNode before = JSON.createObjectNode();
      List<ClientQuotaAlteration> changes = new ArrayList<>();
      for (Map.Entry<String, JsonNode> user : asked.get("quotas").properties()) {
        Map<String, Double> present = present(admin, user.getKey());
        before.set(user.getKey(), JSON.valueToTree(present));
        changes.add(change(user.getKey(), user.getValue(), present));
      }
      changes.removeIf(change -> change.ops().isEmpty());
      if (!changes.isEmpty()) {
        admin.alterClientQuotas(changes).all().get();
      }
      System.out.println(JSON.writeValueAsString(before));
    }
  }

  private static Map<String, Double> present(Admin admin, String user)
      throws ExecutionException, InterruptedException {
    var exactly = ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.USER, user);
    var filter = ClientQuotaFilter.containsOnly(List.of(exactly));
    return admin.describeClientQuotas(filter).entities().get().getOrDefault(entity(user), Map.of());
  }

  /** What makes a user's quotas those that are wanted: each other one is taken away. */
  private static ClientQuotaAlteration change(String user, JsonNode wanted, Map<String, Double> present) {
    List<ClientQuotaAlteration.Op> changes = new ArrayList<>();
    wanted
        .properties()
        .forEach(
            one -> {
              Double value = one.getValue().asDouble();
              if (!value.equals(present.get(one.getKey()))) {
                changes.add(new ClientQuotaAlteration.Op(one.getKey(), value));
              }
            });
    present.keySet().stream()
        .filter(name -> !wanted.has(name))
        .forEach(name -> changes.add(new ClientQuotaAlteration.Op(name, null)));
    return new ClientQuotaAlteration(entity(user), changes);
  }

  private static ClientQuotaEntity entity(String user) {
    return new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, user));
  }
}
