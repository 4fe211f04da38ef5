package kappa;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import kappa.MetricColumns.Entry;

/**
 * A kind of machine that an OpenTelemetry resource can be: the table of `identity.py`, in the same order.
 *
 * @param keys a resource that has one of them is one; the first of them is its name
 * @param within what stands before its name, as far as the resource has it
 * @param series the attributes that distinguish its series
 */
record Identity(List<String> keys, List<String> within, List<String> series) {

  private static final List<Identity> ALL =
      List.of(
          new Identity(
              List.of("k8s.pod.name", "k8s.pod.uid"),
              List.of("k8s.cluster.name", "k8s.namespace.name"),
              List.of("service.name", "k8s.container.name")),
          new Identity(
              List.of("aws.ecs.task.id"), List.of("aws.ecs.task.family"), List.of("service.name", "container.name")),
          new Identity(
              List.of(
                  "k8s.node.name", "host.name", "service.instance.id", "host.id", "container.id", "cloud.resource_id"),
              List.of(),
              List.of("service.name", "service.instance.id", "container.name")));

  /** What kind of machine a resource is; null if nothing names one. */
  static Identity of(Map<String, String> resource) {
    for (Identity one : ALL) {
      if (one.name(resource) != null) {
        return one;
      }
    }
    return null;
  }

  private String name(Map<String, String> resource) {
    for (String key : keys) {
      String value = JsonReader.nonEmpty(resource.get(key));
      if (value != null) {
        return value;
      }
    }
    return null;
  }

  /** The machine's name. */
  String machine(Map<String, String> resource) {
    if (within.isEmpty()) {
      return name(resource);
    }
    List<String> parts = new ArrayList<>();
    for (String key : within) {
      String value = JsonReader.nonEmpty(resource.get(key));
      if (value != null) {
        parts.add(value);
      }
    }
    parts.add(name(resource));
    return String.join("/", parts);
  }

  /** The attributes that distinguish the machine's services, as a part of their series. */
  List<Entry> entries(Map<String, String> resource, String machine) {
    return series.stream()
        .map(key -> new Entry(key, resource.get(key)))
        .filter(entry -> entry.value() != null && !entry.value().equals(machine))
        .toList();
  }
}
