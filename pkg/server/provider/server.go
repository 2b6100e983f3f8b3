package provider

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
)

// Server serves Gatekeeper over HTTPS, probes and metrics. It is used once:
// New, optionally Listen, Run.
type Server struct {
	options Options
	handler *handler
	tls     *edgeTLS
	serving atomic.Bool // the HTTPS listener accepts connections

	listening            bool
	edge, health, scrape port
}

// port is a server with its listener.
type port struct {
	*http.Server
	address  string       // empty: nowhere
	listener net.Listener // nil until Listen
}

func (s *Server) ports() []*port { return []*port{&s.edge, &s.health, &s.scrape} }

// New returns a Server that asks decider and resolver and logs to logger. It returns an error
// for contradictory options, and for options that would accept every client without saying
// so.
func New(decider Decider, resolver Resolver, logger *logrus.Logger, options Options) (*Server, error) {
	if decider == nil || resolver == nil || logger == nil {
		return nil, errors.New("new provider: decider, resolver and logger are required")
	}
	options = options.withDefaults()
	if err := cmp.Or(options.Validate(), options.validateTLS()); err != nil {
		return nil, fmt.Errorf("new provider: %w", err)
	}
	s := &Server{options: options, tls: newEdgeTLS(options)}
	s.handler = newHandler(decider, resolver, logger, options, s.tls.authorizer())
	options.Metrics.MustRegister(certificateExpiry(options.TLS))
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	longest := max(options.VerifyTimeout, options.MutateTimeout)
	s.edge = port{address: options.Address, Server: &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readHeaderTimeout + longest,
		WriteTimeout:      longest + writeAllowance,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnContext:       rememberChecks,
		Protocols:         protocols,
		ErrorLog:          log.New(newNotices(logger), "", 0),
		// By default net/http answers "OPTIONS *" without a body.
		DisableGeneralOptionsHandler: true,
	}}
	s.health = port{address: options.HealthAddress, Server: newPlainServer(s.healthHandler(), logger)}
	s.scrape = port{address: options.MetricsAddress, Server: newPlainServer(metricsHandler(options.Metrics), logger)}
	return s, nil
}

// Listen opens the listeners, so that the addresses are known. Run accepts connections.
func (s *Server) Listen(ctx context.Context) error {
	if s.listening {
		return nil
	}
	var config net.ListenConfig
	for _, p := range s.ports() {
		if p.address == "" {
			continue
		}
		var err error
		if p.listener, err = config.Listen(ctx, "tcp", p.address); err != nil {
			s.closeListeners()
			return fmt.Errorf("listen on %s: %w", p.address, err)
		}
	}
	s.listening = true
	return nil
}

func (s *Server) closeListeners() {
	for _, p := range s.ports() {
		if p.listener != nil {
			_ = p.listener.Close() // it has not accepted anything
		}
	}
}

// Address returns where the HTTPS edge listens, "" before Listen.
func (s *Server) Address() string { return addressOf(s.edge.listener) }

// HealthAddress returns where probes are answered, "" if nowhere.
func (s *Server) HealthAddress() string { return addressOf(s.health.listener) }

// MetricsAddress returns where metrics are served, "" if nowhere.
func (s *Server) MetricsAddress() string { return addressOf(s.scrape.listener) }

// Forget drops the metrics of a namespace that no longer exists.
func (s *Server) Forget(namespace verify.Namespace) { s.handler.metrics.forget(namespace) }

func addressOf(listener net.Listener) string {
	if listener == nil {
		return ""
	}
	return listener.Addr().String()
}

// Run serves until ctx ends, or returns the error of the first listener that fails. When ctx
// ends, readiness fails first, then the server stops accepting connections and finishes
// requests in flight within the grace period. It returns an error if some did not finish.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	failed := make(chan error, 3)
	serve := func(server *http.Server, listener net.Listener) {
		if listener == nil {
			return
		}
		running.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("serve on %s: %w", listener.Addr(), err)
			}
		})
	}
	serve(s.edge.Server, tls.NewListener(s.edge.listener, s.tls.listenerConfig()))
	serve(s.health.Server, s.health.listener)
	serve(s.scrape.Server, s.scrape.listener)
	s.serving.Store(true)
	defer func() { // probes and metrics last
		for _, p := range s.ports() {
			_ = p.Close() // a server that fails to close is closed
		}
	}()
	select {
	case err := <-failed:
		s.serving.Store(false)
		return err
	case <-ctx.Done():
		return s.drain(background)
	}
}

// drain stops the edge without failing a request in flight.
func (s *Server) drain(ctx context.Context) error {
	s.serving.Store(false)
	s.handler.draining.Store(true)
	if s.options.DrainDelay > 0 {
		time.Sleep(s.options.DrainDelay)
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.GracePeriod)
	defer cancel()
	if err := s.edge.Shutdown(ctx); err != nil {
		return fmt.Errorf("finish requests within %s: %w", s.options.GracePeriod, err)
	}
	return nil
}

// newPlainServer returns a server for probes or metrics: plain HTTP, on a port other than
// Gatekeeper's.
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
	if _, err := s.tls.config(); err != nil {
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

// notices logs the messages of net/http, such as failed handshakes, at a limited rate: anyone
// who can reach the port can cause them.
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
