// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsgate lets those scrape the operator's metrics who may: the API
// server says whose a token is, and whether they may get the path. It does
// what controller-runtime's own filter does; that one brings half of an API
// server into the binary, which was a third of it.
package metricsgate

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowFor is how long a yes of the API server holds, refuseFor a no.
	allowFor  = time.Minute
	refuseFor = 10 * time.Second
	// askTime bounds the questions about one request.
	askTime = 10 * time.Second
	// maxKnown verdicts are kept.
	maxKnown = 256
	// maxToken is the longest token that is asked about, in bytes.
	maxToken = 16 << 10
)

// Filter is controller-runtime's Options.FilterProvider. The operator needs to
// create tokenreviews and subjectaccessreviews; who scrapes, to get /metrics.
func Filter(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	authentication, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	g := &gate{
		now: time.Now, known: map[[sha256.Size]byte]verdict{},
		whose: func(ctx context.Context, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
			return authentication.TokenReviews().Create(ctx, r, metav1.CreateOptions{})
		},
		may: func(ctx context.Context, r *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error) {
			return authorization.SubjectAccessReviews().Create(ctx, r, metav1.CreateOptions{})
		},
	}
	return g.filter, nil
}

type gate struct {
	now   func() time.Time
	whose func(context.Context, *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)
	may   func(context.Context, *authorizationv1.SubjectAccessReview) (*authorizationv1.SubjectAccessReview, error)

	mu    sync.Mutex
	known map[[sha256.Size]byte]verdict
}

// verdict is the status of a refusal, or 200.
type verdict struct {
	status int
	until  time.Time
}

func (g *gate) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, err := g.judge(r)
		if err != nil {
			log.Error(err, "Cannot ask the API server who scrapes the metrics")
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}

// judge gives 200 to who may come in, else the status of the refusal.
func (g *gate) judge(r *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return http.StatusUnauthorized, nil
	}
	verb, path := strings.ToLower(r.Method), r.URL.Path
	// Neither a method nor a token has a NUL in it.
	id := sha256.Sum256([]byte(verb + "\x00" + token + "\x00" + path))
	now := g.now()
	g.mu.Lock()
	known, ok := g.known[id]
	g.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.status, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), askTime)
	defer cancel()
	status, err := g.ask(ctx, token, verb, path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	g.keep(id, status, now)
	return status, nil
}

func (g *gate) keep(id [sha256.Size]byte, status int, now time.Time) {
	lasts := refuseFor
	if status == http.StatusOK {
		lasts = allowFor
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnown {
		clear(g.known) // Those that come often are asked about again.
	}
	g.known[id] = verdict{status, now.Add(lasts)}
}

func (g *gate) ask(ctx context.Context, token, verb, path string) (int, error) {
	review, err := g.whose(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}})
	if err != nil {
		return 0, err
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := g.may(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
	}})
	if err != nil {
		return 0, err
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
