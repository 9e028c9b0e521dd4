package readers

import "slices"

// row allows a client to differ from the judge on streams that the rule by ends. A row of a lenient rule
// with nothing but why says that the client holds the rule.
type row struct {
	client string
	by     rule
	passes bool     // the client ignores the rule
	ends   []ending // the connection may also end in these ways
	free   bool     // after the messages before, the client may do anything
	half   bool     // the client may return a part of a message as one more message
	why    string
}

const (
	same  = -2 // in ends: the code that the judge wants
	halfs = "it returns what flate makes of damaged data, and goes on"
	final = "the judge does not read on behind a final block; a test of package conn does"
	long  = "it accepts a length that is written with more bytes than it needs"
)

var gws1000 = ending{class: "closed", code: same, said: 1000}

var table = []row{
	{client: ours, by: ruleNeverFits, why: "no sensible sender needs so many compressed bytes for a message within the limit, so it refuses the message"},
	{client: ours, by: ruleFinalBlock, free: true, why: final},

	{client: "coder", by: ruleMasked, passes: true, why: "as a client it does not look at the mask, and unmasks control frames only"},
	{client: "coder", by: ruleLong, passes: true, why: long},
	{client: "coder", by: ruleLongOfPing, passes: true, why: long},
	{client: "coder", by: ruleHuge, ends: []ending{{class: "refused", said: none}}, why: "it hangs up without a close frame"},
	{client: "coder", by: ruleText, passes: true, why: "it does not check UTF-8"},
	{client: "coder", by: ruleReason, passes: true, why: "it does not check UTF-8"},
	{client: "coder", by: ruleDeflate, free: true, why: halfs},
	{client: "coder", by: ruleFinalBlock, free: true, why: "it takes the bytes behind the final block for the next block"},
	{client: "coder", by: ruleCut, half: true, why: "if the server hangs up between two reads of io.ReadAll, it returns the part before as the message"},
	{client: "coder", by: ruleCutBetween, half: true, why: "it returns the fragments before the end as the message"},
	{client: "coder", by: ruleCutDeflate, half: true, why: "it returns the part before the end as the message"},
	{client: "coder", by: ruleCloseIn, ends: []ending{{class: "panic"}, {class: "refused", said: same}}, why: "it closes a reader that is in use"},

	{client: "gorilla", by: ruleRSV1Late, passes: true, why: "it looks at RSV1 in no frame but the first of a message"},
	{client: "gorilla", by: ruleLong, passes: true, why: long},
	{client: "gorilla", by: ruleHuge, ends: []ending{{class: "too big", said: none}}, why: "it reads the length as a negative number, and hangs up without a close frame"},
	{client: "gorilla", by: ruleBigWire, why: "its limit counts the bytes that come, not the decompressed bytes"},
	{client: "gorilla", by: ruleBigInflate, passes: true, why: "its limit counts the bytes that come, not the decompressed bytes"},
	{client: "gorilla", by: ruleText, passes: true, why: "it does not check UTF-8 in messages"},
	{client: "gorilla", by: ruleReason, ends: []ending{{class: "refused", said: 1002}}, why: "it always checks UTF-8 in reasons, and calls bad UTF-8 a protocol error"},
	{client: "gorilla", by: ruleCode1014, ends: []ending{{class: "refused", said: 1002}}, why: "its list of codes ends at 1013"},
	{client: "gorilla", by: ruleOneByte, ends: []ending{{class: "closed", code: 1005, said: 0}}, why: "it treats a close frame of one byte as an empty one"},
	{client: "gorilla", by: ruleDeflate, free: true, why: halfs},
	{client: "gorilla", by: ruleNoPayload, free: true, why: "it gives flate only the end of a block, whose beginning is missing"},
	{client: "gorilla", by: ruleFinalBlock, free: true, why: "it takes the bytes behind the final block for the next block"},

	{client: "gws", by: ruleRSV23, passes: true, why: "with compression it looks at no reserved bit"},
	{client: "gws", by: ruleRSV1Late, passes: true, why: "with compression it looks at no reserved bit"},
	{client: "gws", by: ruleLong, passes: true, why: long},
	{client: "gws", by: ruleHuge, ends: []ending{{class: "panic"}}, why: "it makes a slice of a negative length"},
	{client: "gws", by: ruleBigWire, why: "its limit counts the bytes that come, too"},
	{client: "gws", by: ruleBigInflate, ends: []ending{{class: "too big", said: 1011}}, why: "it calls every error of decompression an internal error"},
	{client: "gws", by: ruleClosed, ends: []ending{gws1000}, why: "it answers codes below 1016 with 1000"},
	{client: "gws", by: ruleReason, ends: []ending{gws1000}, why: "it answers codes below 1016 with 1000"},
	{client: "gws", by: ruleCode1014, ends: []ending{{class: "refused", said: 1002}}, why: "it counts 1014 among the codes that may not be sent"},
	{client: "gws", by: ruleDeflate, free: true, why: halfs},
	{client: "gws", by: ruleNoPayload, free: true, why: "it gives flate only the end of a block, whose beginning is missing"},
	{client: "gws", by: ruleFinalBlock, free: true, why: "it takes the bytes behind the final block for the next block"},
	{client: "gws", by: ruleEnd, ends: []ending{{class: "gone", said: 1000}}, why: "it sends a close frame after the server has hung up"},
	{client: "gws", by: ruleCut, ends: []ending{{class: "gone", said: 1000}}, why: "it sends a close frame after the server has hung up"},
	{client: "gws", by: ruleCutBetween, ends: []ending{{class: "gone", said: 1000}}, why: "it sends a close frame after the server has hung up"},
	{client: "gws", by: ruleCutDeflate, ends: []ending{{class: "gone", said: 1000}}, why: "it sends a close frame after the server has hung up"},
}

// lenient are the rules that a client need not hold. If a client holds one of them, a row says so.
var lenient = []rule{ruleBigWire, ruleNeverFits, ruleNoPayload}

// rowsOf returns the rows of a client.
func rowsOf(client string) (all []*row) {
	for i := range table {
		if table[i].client == client {
			all = append(all, &table[i])
		}
	}
	return all
}

// ignores reports whether a client ignores a rule. It also returns the row of the client for that rule, if
// there is one.
func ignores(client string, by rule) (*row, bool) {
	for _, r := range rowsOf(client) {
		if r.by == by {
			return r, r.passes
		}
	}
	return nil, slices.Contains(lenient, by)
}

// ended reports whether got is one of the ends that the row allows beside those of the judge.
func (r *row) ended(got ending, want verdict) bool {
	return slices.ContainsFunc(r.ends, func(e ending) bool {
		return slices.ContainsFunc(want.ends, func(w ending) bool {
			e := e
			if e.code == same {
				e.code = w.code
			}
			if e.said == same {
				e.said = w.said
			}
			return e == got
		})
	})
}
