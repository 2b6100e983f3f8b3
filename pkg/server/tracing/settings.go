package tracing

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// settings are what the libraries leave to the program, of the variables at
// https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables.
type settings struct {
	enabled bool
	grpc    bool // the protocol is gRPC, else HTTP with protocol buffers
	queue   int  // spans
}

// first returns the first variable that is set.
func first(names ...string) (name, value string) {
	for _, name = range names {
		if value = strings.TrimSpace(os.Getenv(name)); value != "" {
			return name, value
		}
	}
	return name, ""
}

func readSettings() (settings, error) {
	if _, disabled := first("OTEL_SDK_DISABLED"); strings.EqualFold(disabled, "true") {
		return settings{}, nil
	}
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch name, exporter := first("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return settings{}, nil
	case "":
		if endpoint == "" {
			return settings{}, nil
		}
	case "otlp":
	default:
		return settings{}, fmt.Errorf("%s is %q, it must be otlp or none", name, exporter)
	}
	s := settings{enabled: true, queue: defaultQueue}
	switch name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol {
	case "grpc":
		s.grpc = true
	case "", "http/protobuf": // the default of the specification
	default:
		return settings{}, fmt.Errorf("%s is %q, it must be grpc or http/protobuf", name, protocol)
	}
	switch name, sampler := first("OTEL_TRACES_SAMPLER"); sampler {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
	case "traceidratio", "parentbased_traceidratio":
		name, ratio := first("OTEL_TRACES_SAMPLER_ARG")
		if n, err := strconv.ParseFloat(ratio, 64); ratio != "" && (err != nil || !(n >= 0 && n <= 1)) {
			return settings{}, fmt.Errorf("%s is %q, it must be a number from 0 to 1", name, ratio)
		}
	default: // the SDK would sample everything
		return settings{}, fmt.Errorf("%s is %q, it must be always_on, always_off, traceidratio, or one of them after parentbased_", name, sampler)
	}
	if name, size := first("OTEL_BSP_MAX_QUEUE_SIZE"); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 || n > maxQueue {
			return settings{}, fmt.Errorf("%s is %q, it must be a number from 1 to %d", name, size, maxQueue)
		}
		s.queue = n
	}
	return s, checkExporter()
}

// checkExporter refuses what the libraries would not: they send to another place, without
// the headers, or trusting other CAs, print what a header has, and panic.
func checkExporter() error {
	const traces, all = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
	if name, endpoint := first(traces+"ENDPOINT", all+"ENDPOINT"); endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return fmt.Errorf("%s must be a URL like http://otel-collector.monitoring:4317", name)
		}
	}
	for _, name := range []string{traces + "HEADERS", all + "HEADERS"} {
		_, headers := first(name)
		for header := range strings.SplitSeq(headers, ",") {
			key, value, ok := strings.Cut(header, "=")
			if strings.TrimSpace(header) == "" {
				continue
			}
			if _, err := url.PathUnescape(value); !ok || err != nil || !isToken(strings.TrimSpace(key)) {
				return fmt.Errorf("%s must be name=value pairs with commas between them, values with percent signs as in URLs; it is not shown, because headers may be secret", name)
			}
		}
	}
	for _, name := range []string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
		if name, file := first(traces+name, all+name); file != "" {
			if _, err := os.ReadFile(file); err != nil { //nolint:gosec // whoever starts the program names it
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if name, size := first("OTEL_BSP_MAX_EXPORT_BATCH_SIZE"); size != "" {
		if n, err := strconv.Atoi(size); err != nil || n < 1 || n > maxQueue {
			return fmt.Errorf("%s is %q, it must be a number from 1 to %d", name, size, maxQueue)
		}
	}
	return nil
}

// isToken reports whether s can be the name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r)
	})
}
