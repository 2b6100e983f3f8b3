package provider

import (
	"errors"
	"log"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// newPlainServer returns a server for probes or metrics: plain HTTP, on a port
// that is not Gatekeeper's.
func newPlainServer(handler http.Handler, logger *logrus.Logger) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: maxHeaderBytes,
		ReadHeaderTimeout: probeTimeout, ReadTimeout: probeTimeout, WriteTimeout: probeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: log.New(newNotices(logger), "", 0),
	}
}

// healthHandler serves /healthz (the process runs) and /readyz (the edge accepts
// connections and can decide).
func (s *Server) healthHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, s.ready()) })
	return mux
}

func (s *Server) ready() error {
	if !s.serving.Load() {
		return errors.New("the HTTPS port is not served")
	}
	if err := s.tls.ready(); err != nil {
		return err
	}
	if s.options.Ready == nil {
		return nil
	}
	return s.options.Ready()
}

func answerProbe(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "ok\n"
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		text = policy.Cut(err.Error(), maxReasonBytes) + "\n"
	}
	_, _ = w.Write([]byte(text)) // the probe may be gone
}

func metricsHandler(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: maxScrapes}))
	return mux
}

// notices logs the messages of net/http, such as failed handshakes, at a limited
// rate: anyone who reaches the port can cause them.
type notices struct {
	log   *logrus.Logger
	limit *rate.Limiter
}

func newNotices(logger *logrus.Logger) *notices {
	return &notices{log: logger, limit: rate.NewLimiter(noticesPerSecond, noticeBurst)}
}

// Write logs a message or drops it.
func (n *notices) Write(notice []byte) (int, error) {
	if n.limit.Allow() {
		n.log.WithField("notice", shown(strings.TrimSpace(string(notice)))).Warn("a connection failed")
	}
	return len(notice), nil
}
