package check

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// reply is the result of one request.
type reply int

const (
	unreached reply = iota // it could not be sent, or nobody knows
	answered
	refused
	silent
	forbidden
)

// Asker sends requests to Landwaiter at Gatekeeper's addresses. It sends neither credentials of
// the person nor an image: any answer is enough. It is safe for concurrent use.
type Asker struct {
	config *rest.Config
	within time.Duration // for all requests to one place
	again  time.Duration // between two requests, the first of which was refused
}

// NewAsker returns an Asker for the API server of config, through which Services are reached.
func NewAsker(config *rest.Config) *Asker {
	return &Asker{config: config, within: answerWithin, again: answerAgain}
}

// ask sends requests to a place, and returns their results and the missing permission.
func (a *Asker) ask(ctx context.Context, at Place, requests int) (answers Answers, missing string) {
	ctx, cancel := context.WithTimeout(ctx, a.within)
	defer cancel()
	answers = Answers{Place: at, Asked: requests, Within: a.within}
	replies, whys := make([]reply, requests), make([]string, requests)
	var asking sync.WaitGroup
	for i := range requests {
		asking.Go(func() { replies[i], whys[i] = a.one(ctx, at) })
	}
	asking.Wait()
	for i, r := range replies {
		switch r {
		case answered:
			answers.Answered++
			continue
		case refused:
			answers.Refused++
		case silent:
			answers.Silent++
		case forbidden:
			return Answers{}, fmt.Sprintf("get services/proxy %s in namespace %s", proxied(at), at.Service.Namespace)
		case unreached:
		}
		answers.Why = cmp.Or(answers.Why, whys[i])
	}
	return answers, ""
}

// one sends a request until it is not refused or ctx ends: a replica may be restarting.
func (a *Asker) one(ctx context.Context, at Place) (r reply, why string) {
	for {
		last, said := a.send(ctx, at)
		if ctx.Err() != nil && r == refused {
			return r, why // the last request was cut short
		}
		if r, why = last, said; r != refused {
			return r, why
		}
		select {
		case <-ctx.Done():
			return r, why
		case <-time.After(a.again):
		}
	}
}

func (a *Asker) send(ctx context.Context, at Place) (reply, string) {
	if at.Service != (types.NamespacedName{}) {
		return a.through(ctx, at)
	}
	return directly(ctx, at)
}

// directly sends a request as Gatekeeper does, but without a certificate, which ends the request once
// the server has answered.
func directly(ctx context.Context, at Place) (reply, string) {
	// other findings are about the certificate
	client, err := rest.HTTPClientFor(&rest.Config{Host: "https://" + at.Host, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		return unreached, err.Error()
	}
	var began, shook atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { began.Store(true) },
		TLSHandshakeDone:  func(_ tls.ConnectionState, err error) { shook.Store(err == nil) },
	})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at.Host+"/", nil)
	if err != nil {
		return unreached, err.Error()
	}
	request.Close = true // the next one may reach another replica
	response, err := client.Do(request)
	if err == nil {
		_ = response.Body.Close() // any answer counts
		return answered, ""
	}
	var reason *url.Error
	if errors.As(err, &reason) {
		err = reason.Err
	}
	var plain tls.RecordHeaderError
	switch late := ctx.Err() != nil; {
	case late && began.Load():
		return silent, ""
	case late:
	case shook.Load(), strings.Contains(err.Error(), "tls: ") && !errors.As(err, &plain):
		return answered, ""
	case errors.Is(err, syscall.ECONNREFUSED), began.Load(): // or something else listens there
		return refused, err.Error()
	}
	return unreached, err.Error()
}

// proxied names a Service with a port for the API server's proxy.
func proxied(at Place) string { return "https:" + at.Service.Name + ":" + at.Port }

// through reaches a Service through the proxy of the API server, which chooses one of its
// pods.
func (a *Asker) through(ctx context.Context, at Place) (reply, string) {
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		return unreached, err.Error()
	}
	address, _, err := rest.DefaultServerUrlFor(a.config)
	if err != nil {
		return unreached, err.Error()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		address.JoinPath("api/v1/namespaces", at.Service.Namespace, "services", proxied(at), "proxy/").String(), nil)
	if err != nil {
		return unreached, err.Error()
	}
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return silent, ""
		}
		return unreached, err.Error()
	}
	defer func() { _ = response.Body.Close() }() // it was read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return unreached, err.Error()
	}
	var said metav1.Status
	if json.Unmarshal(text, &said) != nil || said.Kind != "Status" {
		return answered, "" // it is not the API server's own
	}
	return judged(said)
}

// judged interprets an answer of the API server itself: its message says why the Service did
// not answer.
func judged(said metav1.Status) (reply, string) {
	why, tried := strings.CutPrefix(said.Message, "error trying to reach service: ")
	has := func(texts ...string) bool {
		for _, text := range texts {
			if strings.Contains(why, text) {
				return true
			}
		}
		return false
	}
	switch {
	case said.Code == http.StatusForbidden, said.Code == http.StatusUnauthorized:
		return forbidden, ""
	case said.Code == http.StatusNotFound, has("no endpoints available"), tried && has("connection refused"):
		return refused, why
	case tried && has("remote error: ", "tls: ", "connection reset", "broken pipe", "EOF"): // it wants a certificate
		return answered, ""
	}
	return unreached, why
}

// answers asks every place in the background. The returned function waits for the results.
func (r *reader) answers() (wait func()) {
	if r.into.Asker == nil || r.failed != nil || !r.into.needs(SourceAnswers) {
		return func() {}
	}
	v := newView(r.into)
	places, requests := v.places(), v.requests()
	found, missing := make([]Answers, len(places)), make([]string, len(places))
	var asking sync.WaitGroup
	for i, at := range places {
		asking.Go(func() {
			before := r.renewal()
			found[i], missing[i] = r.into.Asker.ask(r.ctx, at, requests)
			if a := &found[i]; a.Answered == 0 && a.Refused+a.Silent > 0 && !before.IsZero() {
				after := r.renewal()
				a.Renewed, a.Lapsed = after.After(before), after.Equal(before)
			}
		})
	}
	return func() {
		asking.Wait()
		for i := range places {
			if missing[i] != "" {
				r.into.Unread[SourceAnswers] = Unread{Missing: missing[i], Why: "you cannot " + missing[i]}
				continue
			}
			r.into.Answers = append(r.into.Answers, found[i])
		}
	}
}

// renewal returns when the Lease was renewed, the zero time if that cannot be read.
func (r *reader) renewal() time.Time {
	lease := &coordinationv1.Lease{}
	if err := r.client.Get(r.ctx, types.NamespacedName{Namespace: r.into.Namespace, Name: leaseName}, lease); err != nil ||
		lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}
