package readers

import "slices"

// row is where a client differs from the judge: it ignores a rule (passes), holds one that is lenient,
// may end in other ways (ends), may read half a message more before the end (half), or may do anything
// from there on (free).
type row struct {
	client string
	by     rule
	passes bool
	ends   []ending
	free   bool
	half   bool
	why    string
}

const (
	same  = -2 // the code that the judge wants
	halfs = "it reads what flate makes of damaged data, and goes on"
	final = "the judge does not read on behind a final block, which a test of package conn does"
	long  = "it does not compare the form of a length with the length"
)

var gws1000 = ending{class: "closed", code: same, said: 1000}

var table = []row{
	{client: ours, by: ruleNeverFits, why: "it believes no sender who needs so many bytes for a message of the limit"},
	{client: ours, by: ruleFinalBlock, free: true, why: final},

	{client: "coder", by: ruleMasked, passes: true, why: "as a client it does not look at the mask, and unmasks control frames only"},
	{client: "coder", by: ruleLong, passes: true, why: long},
	{client: "coder", by: ruleLongOfPing, passes: true, why: long},
	{client: "coder", by: ruleHuge, ends: []ending{{class: "refused", said: none}}, why: "it hangs up without a close frame"},
	{client: "coder", by: ruleText, passes: true, why: "it does not check UTF-8"},
	{client: "coder", by: ruleReason, passes: true, why: "it does not check UTF-8"},
	{client: "coder", by: ruleDeflate, free: true, why: halfs},
	{client: "coder", by: ruleFinalBlock, free: true, why: "it reads on in the middle of the rest"},
	{client: "coder", by: ruleCut, half: true, why: "if the end comes where it asks for more, between two reads of io.ReadAll, it takes the half before for the message"},
	{client: "coder", by: ruleCutBetween, half: true, why: "it takes the fragments before the end for the message"},
	{client: "coder", by: ruleCutDeflate, half: true, why: "it takes the half before the end for the message"},
	{client: "coder", by: ruleCloseIn, ends: []ending{{class: "panic"}, {class: "refused", said: same}}, why: "it closes a reader that is in use"},

	{client: "gorilla", by: ruleRSV1Late, passes: true, why: "it looks at RSV1 in no frame but the first of a message"},
	{client: "gorilla", by: ruleLong, passes: true, why: long},
	{client: "gorilla", by: ruleHuge, ends: []ending{{class: "too big", said: none}}, why: "it takes it for a negative length, and hangs up without a close frame"},
	{client: "gorilla", by: ruleBigWire, why: "its limit counts what comes, not what is inflated"},
	{client: "gorilla", by: ruleBigInflate, passes: true, why: "its limit counts what comes, not what is inflated"},
	{client: "gorilla", by: ruleText, passes: true, why: "it does not check UTF-8 in messages"},
	{client: "gorilla", by: ruleReason, ends: []ending{{class: "refused", said: 1002}}, why: "it always checks UTF-8 in reasons, and calls it a protocol error"},
	{client: "gorilla", by: ruleCode1014, ends: []ending{{class: "refused", said: 1002}}, why: "its list of codes ends at 1013"},
	{client: "gorilla", by: ruleOneByte, ends: []ending{{class: "closed", code: 1005, said: 0}}, why: "it takes one byte for none"},
	{client: "gorilla", by: ruleDeflate, free: true, why: halfs},
	{client: "gorilla", by: ruleNoPayload, free: true, why: "flate gets the end of a block that has not begun"},
	{client: "gorilla", by: ruleFinalBlock, free: true, why: "it reads on in the middle of the rest"},

	{client: "gws", by: ruleRSV23, passes: true, why: "with compression it looks at no reserved bit"},
	{client: "gws", by: ruleRSV1Late, passes: true, why: "with compression it looks at no reserved bit"},
	{client: "gws", by: ruleLong, passes: true, why: long},
	{client: "gws", by: ruleHuge, ends: []ending{{class: "panic"}}, why: "it makes a slice of a negative length"},
	{client: "gws", by: ruleBigWire, why: "its limit counts what comes as well"},
	{client: "gws", by: ruleBigInflate, ends: []ending{{class: "too big", said: 1011}}, why: "it calls all that goes wrong while it inflates an internal error"},
	{client: "gws", by: ruleClosed, ends: []ending{gws1000}, why: "it answers codes below 1016 with 1000"},
	{client: "gws", by: ruleReason, ends: []ending{gws1000}, why: "it answers codes below 1016 with 1000"},
	{client: "gws", by: ruleCode1014, ends: []ending{{class: "refused", said: 1002}}, why: "it counts 1014 among the codes that may not be sent"},
	{client: "gws", by: ruleDeflate, free: true, why: halfs},
	{client: "gws", by: ruleNoPayload, free: true, why: "flate gets the end of a block that has not begun"},
	{client: "gws", by: ruleFinalBlock, free: true, why: "it reads on in the middle of the rest"},
	{client: "gws", by: ruleEnd, ends: []ending{{class: "gone", said: 1000}}, why: "it says goodbye to a peer that has hung up"},
	{client: "gws", by: ruleCut, ends: []ending{{class: "gone", said: 1000}}, why: "it says goodbye to a peer that has hung up"},
	{client: "gws", by: ruleCutBetween, ends: []ending{{class: "gone", said: 1000}}, why: "it says goodbye to a peer that has hung up"},
	{client: "gws", by: ruleCutDeflate, ends: []ending{{class: "gone", said: 1000}}, why: "it says goodbye to a peer that has hung up"},
}

// lenient are the rules that a client need not hold, unless a row says that it does.
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

// ignores returns the row of a client for a rule, if there is one, and reports whether the client
// does not hold the rule.
func ignores(client string, by rule) (*row, bool) {
	for _, r := range rowsOf(client) {
		if r.by == by {
			return r, r.passes
		}
	}
	return nil, slices.Contains(lenient, by)
}

// ended reports whether an end is one of those that the row adds to what the judge wants.
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
