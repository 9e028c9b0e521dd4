package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
	"github.com/redial-go/redial/reconnect/backoff"
)

func parse(t *testing.T, text string) []policy.Choice {
	t.Helper()
	all, err := policy.Parse("-policy", text, policy.Rules())
	require.NoError(t, err)
	return all
}

// What Parse has made writes itself so that Parse makes the same of it.
func TestAPolicyIsWrittenAsItIsParsed(t *testing.T) {
	for text, want := range map[string]string{
		"redial,fixed":                  "redial,fixed",
		"full:base=0.5,cap=15,grpc":     "full:base=500ms,cap=15s,grpc",
		"full, cap=1m ,normal:jitter=0": "full:cap=1m,normal:jitter=0",
		"own:law=equal,factor=1.5":      "own:factor=1.5,law=equal",
		"ocpp:repeats=0,spread=2h":      "ocpp:spread=2h,repeats=0",
		"fixed:base=1m30s":              "fixed:base=1m30s",
	} {
		got := pick.Names(parse(t, text), policy.Text)
		require.Equal(t, want, join(got), text)
		require.Equal(t, got, pick.Names(parse(t, join(got)), policy.Text), text)
	}
	require.Len(t, parse(t, "all"), len(policy.Rules()))
}

func join(words []string) (all string) {
	for i, word := range words {
		if i > 0 {
			all += ","
		}
		all += word
	}
	return all
}

func TestAChoiceMakesItsPolicy(t *testing.T) {
	const ms = time.Millisecond
	for text, want := range map[string]backoff.Policy{
		"full:base=1s":                        &backoff.Exponential{Base: time.Second},
		"proportional:jitter=0.5":             &backoff.Exponential{Jitter: backoff.JitterProportional, Spread: 0.5},
		"own:base=200ms,factor=3,cap=9s":      &backoff.Exponential{Base: 200 * ms, Factor: 3, Cap: 9 * time.Second},
		"own:law=none":                        &backoff.Exponential{Jitter: backoff.JitterNone},
		"own:law=equal":                       &backoff.Exponential{Jitter: backoff.JitterEqual},
		"own:jitter=0.3":                      &backoff.Exponential{Jitter: backoff.JitterProportional, Spread: 0.3},
		"own:law=proportional,jitter=0":       &backoff.Exponential{Jitter: backoff.JitterProportional, Spread: -1},
		"own:law=decorrelated,base=2s,cap=1m": &classic.Decorrelated{Base: 2 * time.Second, Cap: time.Minute},
		"ocpp:base=5s,spread=1s,repeats=2": &backoff.OCPP{
			WaitMinimum: 5 * time.Second,
			RandomRange: time.Second,
			RepeatTimes: 2,
		},
		"described:base=1s,factor=3,cap=9,jitter=.2": &classic.Normal{Min: time.Second, Factor: 3, Max: 9 * time.Second, Jitter: 0.2},
		"simple": &classic.Fixed{Wait: 100 * ms},
	} {
		require.Equal(t, want, parse(t, text)[0].New(), text)
	}
}

func TestAMistakeInAPolicyIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                `there is no -policy "": there are redial, paced, `,
		"fulll":                           `there is no -policy "fulll" (is it "full"?): there are redial, paced, `,
		"redial,gprc:cap=1s":              `there is no -policy "gprc" (is it "grpc"?): there are redial, `,
		"cap=1s":                          `there is no -policy "cap=1s": there are redial, `,
		"recws:base=1s":                   `-policy recws: there is no option "base", nor any other`,
		"full:bse=1s":                     `-policy full: there is no option "bse" (is it "base"?): there are base, factor, cap`,
		"full:":                           `-policy full: want an option such as base=1s, not ""`,
		"full:base=1s,base=2s":            `-policy full: base is given twice`,
		"fixed:base=0":                    `-policy fixed: base=0: must be above 0`,
		"fixed:base=soon":                 `-policy fixed: base=soon: must be a time, such as 1.5s or 20, which is 20s`,
		"full:factor=0.5":                 `-policy full: factor=0.5: must be a number, at least 1`,
		"full:factor=NaN":                 `-policy full: factor=NaN: must be a number, at least 1`,
		"normal:jitter=-0.1":              `-policy normal: jitter=-0.1: must be a number, at least 0`,
		"proportional:jitter=1.5":         `-policy proportional: jitter=1.5: must be at most 1, because a wait is not below 0; "waits -mode users -jitter" cuts it there`,
		"own:jitter=2":                    `-policy own: jitter=2: must be at most 1`,
		"redial:share=0":                  `-policy redial: share=0: must be above 0`,
		"ocpp:repeats=1.5":                `-policy ocpp: repeats=1.5: must be a whole number`,
		"own:law=ful":                     `-policy own: law=ful: there is no law "ful" (is it "full"?): there are none, full, equal, proportional, decorrelated`,
		"own:law=equal,jitter=0.1":        `-policy own: jitter means nothing with law=equal`,
		"own:law=decorrelated,factor=1.5": `-policy own: factor and jitter mean nothing with law=decorrelated, `,
	} {
		_, err := policy.Parse("-policy", text, policy.Rules())
		require.ErrorContains(t, err, want, text)
	}
}
