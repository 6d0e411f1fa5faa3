"""What several formats share: answers, blocks, cassettes, transcripts, YAML. Imports reading and request."""
