// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/espalier-dev/espalier/internal/refusals"
)

// Right is one verb on one resource or path.
type Right struct {
	Verb string
	// Resource as kubectl names it, "deployments.apps", or a path.
	Resource string
	// Name is of the one object that it is limited to, or empty.
	Name string
}

func (r Right) String() string {
	if r.Name == "" {
		return r.Verb + " " + r.Resource
	}
	return r.Verb + " " + r.Resource + " " + r.Name
}

// Rights are what rules grant, one by one, in order.
func Rights(rules []rbacv1.PolicyRule) []Right {
	var out []Right
	for _, rule := range rules {
		resources := slices.Clone(rule.NonResourceURLs)
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				resources = append(resources, refusals.Resource(resource, group))
			}
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					out = append(out, Right{verb, resource, name})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}

// Without gives rules but for one right.
func Without(rules []rbacv1.PolicyRule, lacking Right) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, right := range Rights(rules) {
		if right != lacking {
			out = append(out, ruleOf(right))
		}
	}
	return out
}

func ruleOf(right Right) rbacv1.PolicyRule {
	rule := rbacv1.PolicyRule{Verbs: []string{right.Verb}}
	if right.Name != "" {
		rule.ResourceNames = []string{right.Name}
	}
	if strings.HasPrefix(right.Resource, "/") {
		rule.NonResourceURLs = []string{right.Resource}
		return rule
	}
	resource, sub, _ := strings.Cut(right.Resource, "/")
	resource, group, _ := strings.Cut(resource, ".")
	if sub != "" {
		resource += "/" + sub
	}
	rule.APIGroups, rule.Resources = []string{group}, []string{resource}
	return rule
}
