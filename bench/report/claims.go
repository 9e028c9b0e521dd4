package report

// scenarioTexts are what a scenario's picture shows, and what the article claims of it.
var scenarioTexts = map[string]struct{ title, claim string }{
	"simple_retry_only": {
		"Three retries at once",
		"plain retries quadruple the server's load during the failure."},
	"simple_retry_vs_backoff": {
		"Three retries: at once, or after 100, 200 and 400 ms",
		"backoff lowers the load, in steps."},
	"simple_retry_vs_backoff_closed_loop": {
		"The same with a limit on calls under way: backoff holds its permits while it waits",
		"backoff is far ahead of plain retries; the load dips at 0.6 and 0.8 s, and a surge follows the recovery from 1.25 s on."},
	"jitter_vs_no_jitter": {
		"Backoff with and without jitter, limited calls",
		"jitter makes the load more even; the surge comes at 1.1 s instead of 1.25 s and is shorter."},
	"jitter_vs_no_jitter_cpu_half": {
		"Backoff with and without jitter, limited calls, half of the CPUs",
		"the same, and more so."},
	"exponential_backoff_just_delays_problem_open_loop": {
		"A failure of a whole second: what backoff does to the load if calls are not limited",
		"backoff reaches the fourfold load too, only later."},
	"exponential_backoff_just_delays_problem_good_closed_loop": {
		"The same with at most 0.3 s worth of calls under way",
		"a limit of 0.3 rps hides it."},
	"exponential_backoff_just_delays_problem_bad_closed_loop": {
		"The same with at most 0.4 s worth of calls under way",
		"a limit of 0.4 rps does not hide it."},
	"any_retries_are_slowing_down_recovery": {
		"A server with little to spare: no retries, and two retries at once or with backoff",
		"without retries errors are gone at once, with them at 2.3 s."},
	"retry_cb_or_budget_vs_exp_backoff": {
		"A server with little to spare: a retry budget and a breaker on retries against backoff",
		"budget and retry breaker are at the normal load at 1.0 s, backoff with jitter at 1.25 s."},
	"retry_cb_or_budget_vs_exp_backoff_partial_failure": {
		"A failure of 30 % of the requests: what the budget and the retry breaker cost",
		"they pay with the clients' success; the budget adds about 10 % of load and has more success than the retry breaker."},
	"circuit_breaker_vs_retry_budget/cb_threshold=10%/fail_rate=20%": {
		"One shard of five is down: a circuit breaker that opens at 10 % of failures, and a retry budget",
		"with a breaker at 10 % a cardiogram, and success near zero."},
	"circuit_breaker_vs_retry_budget/cb_threshold=50%/fail_rate=20%": {
		"One shard of five is down: a circuit breaker that opens at 50 % of failures, and a retry budget",
		"a breaker at 50 % does no harm and is no cure."},
	"dp_vs_retry_budget": {
		"Deadline propagation against a retry budget",
		"deadline propagation: higher load, shorter queue and recovery than plain retries, worse than a budget."},
	"mfs": {
		"Half of the CPUs and three retries at once: the failure ends, the overload stays", ""},
	"retry_budget_over_what": {
		"A retry budget over retries at once, and over backoff with jitter", ""},
	"retry_cb_budget_global_vs_local": {
		"Budget and retry breaker: one for all clients, and one for each 200 calls per second", ""},
	"budget_presets": {
		"All requests fail: the article's retry budget beside gRPC's and AWS's", ""},
	"budget_presets_partial_failure": {
		"30 % of the requests fail: the article's retry budget beside gRPC's and AWS's", ""},
	"budget_presets_few_failures": {
		"5 % of the requests fail: no budget is in anybody's way", ""},
}
