// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// What is wrongly taken for a credential lies in a Secret, which harms nobody;
// what is wrongly not taken for one lies in Git. So doubt is for the Secret.

// credentialWords in the name of a variable, header, option or parameter.
var credentialWords = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "pass", "credential", "credentials", "auth", "authorization",
	"authentication", "cookie", "bearer", "pat", "dsn", "jwt", "apikey", "accesskey", "secretkey", "privatekey", "signature", "sig",
	"apitoken", "accesstoken", "authtoken", "key", "keys", "otp", "pin", "connectionstring",
}

// strictWords are so of any value, also of a number.
var strictWords = []string{"password", "passwd", "passphrase", "pwd", "pass", "secret", "pin", "otp", "authorization", "cookie"}

// publicWords after "key" or the like make it none: KEY_PATH, TOKEN_URL.
var publicWords = []string{"path", "file", "dir", "url", "uri", "endpoint", "limit", "count", "type", "name", "id", "ttl", "timeout", "size", "mode", "enabled", "method", "provider"}

// credentialName reports whether what is called so is likely a credential, and
// whether that is so whatever its value is.
func credentialName(name string) (likely, surely bool) {
	parts := nameParts(name)
	if len(parts) == 0 {
		return false, false
	}
	if slices.Contains(parts, "webhook") {
		return true, false
	}
	if slices.Contains(publicWords, parts[len(parts)-1]) {
		return false, false
	}
	joined := strings.Join(parts, "")
	for _, word := range parts {
		likely = likely || slices.Contains(credentialWords, word)
		surely = surely || slices.Contains(strictWords, word)
	}
	for _, end := range []string{"apikey", "token", "secret", "password", "accesskey", "secretkey", "privatekey", "connectionstring"} {
		likely = likely || strings.HasSuffix(joined, end)
	}
	return likely || surely, surely
}

// nameParts splits API_KEY, api-key, apiKey and X-API-Key into lower words.
func nameParts(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = nil
		}
	}
	previous := ' '
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
		} else {
			if unicode.IsUpper(r) && unicode.IsLower(previous) {
				flush()
			}
			word = append(word, r)
		}
		previous = r
	}
	flush()
	return out
}

// tokenPrefixes are how well-known services begin their tokens.
var tokenPrefixes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gldt-", "sk-", "sk_", "rk_live_", "rk_test_", "pk_live_",
	"xoxb-", "xoxp-", "xoxa-", "xoxs-", "xoxe-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "hf_", "npm_", "pypi-", "dop_v1_", "SG.",
	"figd_", "lin_api_", "lin_oauth_", "ntn_", "secret_", "tvly-", "pplx-", "gsk_", "r8_", "shpat_", "sntrys_", "sntryu_", "ATATT",
	"fc-", "BSA", "apify_api_", "dckr_pat_", "EAAC", "phx_", "phc_", "nvapi-", "sbp_", "whsec_", "vercel_", "PMAK-", "glsa_", "eyJ",
}

var (
	tokenRest = regexp.MustCompile(`^[A-Za-z0-9_.=/+-]{8,}$`)
	tokenLike = regexp.MustCompile(`^[A-Za-z0-9_+/=-]{20,}$`)
	run       = regexp.MustCompile(`[A-Za-z0-9]{16,}`)
	plain     = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|[0-9]{1,6})?$`)
	scheme    = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*)://`)
)

// credentialValue reports whether a value looks like a credential by itself.
func credentialValue(value string) bool {
	if strings.Contains(value, "PRIVATE KEY-----") {
		return true
	}
	for _, prefix := range tokenPrefixes {
		if rest, ok := strings.CutPrefix(value, prefix); ok && tokenRest.MatchString(rest) {
			return true
		}
	}
	if scheme.MatchString(value) {
		return credentialURL(value)
	}
	return random(value)
}

// random reports whether text looks drawn by lot: a long run of letters mixed
// with digits, of high entropy.
func random(text string) bool {
	if !tokenLike.MatchString(text) || entropy(text) < 3 {
		return false
	}
	for _, part := range run.FindAllString(text, -1) {
		var digits, upper, lower int
		for _, r := range part {
			switch {
			case unicode.IsDigit(r):
				digits++
			case unicode.IsUpper(r):
				upper++
			default:
				lower++
			}
		}
		if digits >= 3 && upper+lower >= 3 || digits >= 1 && upper >= 3 && lower >= 3 && len(part) >= 20 {
			return true
		}
	}
	return false
}

// entropy of text in bits per character.
func entropy(text string) float64 {
	counts := map[rune]float64{}
	for _, r := range text {
		counts[r]++
	}
	total, bits := float64(len([]rune(text))), 0.0
	for _, n := range counts {
		bits -= n / total * math.Log2(n/total)
	}
	return bits
}

// credentialURL reports whether a URL holds a credential: a password, a
// parameter that is called like one, or a part that looks like one.
func credentialURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		// Such as postgres://user:p%w@host: what stands before @ tells.
		authority, _, _ := strings.Cut(strings.SplitN(text, "://", 2)[1], "/")
		return strings.Contains(authority, "@")
	}
	if _, set := u.User.Password(); set || u.User != nil && (u.Scheme == "http" || u.Scheme == "https" || credentialValue(u.User.Username())) {
		return true
	}
	return len(secretParameters(u)) > 0 || secretPath(u)
}

// secretParameters names those of the query that look like credentials.
func secretParameters(u *url.URL) []string {
	var out []string
	for name, values := range u.Query() {
		for _, value := range values {
			if secret(name, value) {
				out = append(out, name)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

// secretPath reports whether a segment of the path looks like a credential, as
// some services have it.
func secretPath(u *url.URL) bool {
	return slices.ContainsFunc(strings.Split(u.Path, "/"), func(s string) bool { return credentialValue(s) })
}

// secret reports whether the value that is called name is to be kept in a
// Secret.
func secret(name, value string) bool {
	likely, surely := credentialName(name)
	switch {
	case value == "":
		return false
	case surely:
		return true
	case likely:
		return !plain.MatchString(value) && !localPath(value)
	}
	return credentialValue(value)
}
