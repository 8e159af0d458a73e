"""Apache Kafka: events from topics, predictions and dead letters to topics, exactly once."""
