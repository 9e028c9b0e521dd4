package classic_test

import (
	"testing"
	"time"

	"github.com/redial-go/redial/bench/internal/classic"
	"github.com/redial-go/redial/internal/policytest"
	"github.com/redial-go/redial/reconnect/backoff"
)

const reference = "testdata/backoff_moments.csv"

// A row for 0 collisions, and one of AWS, which counts the first retry as 1, correspond to no wait.
func TestDrawsAgreeWithTheReferenceMoments(t *testing.T) {
	const half = 30 * time.Second
	policytest.TestMoments(t, reference, map[string]policytest.Drawn{
		"decorrelated": {Policy: &classic.Decorrelated{}, First: 1, Cap: half, Chain: true},
		"smira_normal": {
			Policy: &classic.Normal{},
			Cap:    15 * time.Minute,
			Chain:  true,
			Soft:   true,
		},
		"fixed":                               {Policy: &classic.Fixed{}},
		"celery_current_cap_then_jitter":      {Policy: &classic.Celery{Maximum: 30}, Cap: half},
		"celery_seed_version_jitter_then_cap": {Policy: &classic.CeleryOld{Maximum: 30}, Cap: half},
		"ethernet_beb_slots":                  {Policy: &classic.Ethernet{}, First: 1, Unit: 51200},
		"cenkalti_v5":                         {Policy: &classic.Cenkalti{}, Cap: time.Minute},
		"grpc_connection":                     {Policy: &classic.GRPC{}, Cap: 2 * time.Minute},
		"nats_go_plain":                       {Policy: &classic.NATS{}},
		"nats_go_tls":                         {Policy: &classic.NATS{Jitter: time.Second}},
		"tailscale":                           {Policy: &classic.Tailscale{}, First: 1, Cap: half},
		"jpillora_jitter_then_cap":            {Policy: &classic.JPillora{Min: time.Second, Max: half}, Cap: half},
		"proportional_20_jitter_then_cap": {
			Policy: &classic.Stubborn{Base: time.Second, Spread: 0.2, Max: half},
			Cap:    half,
		},
		"aws_sdk_go_v2_legacy": {Policy: &classic.AWSLegacy{}, First: 1, Cap: 20 * time.Second},
		"aws_sdk_go_v2_2026":   {Policy: &classic.AWS{}, Cap: 20 * time.Second},
	})
}

// One long chain each, after 60 steps.
func TestDecorrelatedSettlesAsInTheReference(t *testing.T) {
	policytest.TestStationary(t, reference, 5, func(limit time.Duration) backoff.Policy {
		return &classic.Decorrelated{Cap: limit}
	})
}
