package main

import "regexp"

// rule is a pattern that is rare in the documentation of Go, Kubernetes and Prometheus. A match whose group
// named fine is not empty is standard English.
type rule struct {
	advice  string
	pattern *regexp.Regexp
}

// rules are the patterns that fail the check, and the replacements to print.
var rules = []rule{
	{"name the client, agent or caller, not who", words(`who(ever)? (is |are )?(behind|sends?|asks?|waits?|reads?|forwards?|comes|connect(s|ed)|leaves|left|holds|keeps|never|speaks|writes|counts|adds|scrapes|listens|dies|died|tries|goes|says)`)},
	{"name the client, agent or caller, not nobody", words(`(no|any|some)body`)},
	{"name the subject, not what", words(`what (comes|came|goes|went|waits|stands|lies|repeats|finds|belongs|remains|floods|can.t)`)},
	{"reports whether", words(`(says?|tells?) whether`)},
	{"reports, describes", words(`(says?|said|tells?|told) of`)},
	{"begin with the thing, not with Of", regexp.MustCompile(`(^|[.;:|>*-] )Of (each|an?|the|its|one|those|what|this|such|it|them|all|OTLP|HTTP)\b`)},
	{"use a compound: OTLP request", words(`(requests?|connections?|answers?|calls?|headers?|bod(y|ies)|metrics|streams?|limits?|frames?|flags?|points?) of (OTLP|gRPC|HTTP(/[12](\.1)?)?|Zipkin|TLS|memory|CPU|ours)`)},
	{"over HTTP, through the socket", words(`(?P<fine>(used|defined|required|specified) )?by (HTTP|gRPC|OTLP|TLS|HTTP/[12](\.1)?|TCP|Zipkin)`)},
	{"is not a, is invalid, is empty", words(`(it|that|which|one|they|those) (is|are|was|were) none|(?P<fine>there )?(is|are|was|were|be) (no (number|flag|label|row|answer|status|tag|name|key|end|duration|weight|metric|part|way)s?)`)},
	{"if, when or unless; where is for places", words(`where (there (is|are)|nobody|somebody|none)`)},
	{"fix, normalize, obey", words(`(mend(s|ed|ing)?|heed(s|ed)?|foretells?|trample[ds]?|befall|behold)`)},
	{"forward, continue, pass", words(`(go|goes|going|went|gone) on|hand(s|ed|ing)? ((it|them) )?on`)},
	{"after, upstream, next to", words(`behind (its|their|the (request|answer|last|first|span|head|body|header|end))|beside`)},
	{"is sent, receives, is notified", words(`(is|are|was|were) told|hears?|heard`)},
	{"is, is in, belongs to", words(`(stands?|lies|lie|lay|stood) (in|at|on|behind|before|there|beside|under|where|by|as|below|around)`)},
	{"again, instead of, currently", words(`anew|in the (place|midst) of|just now|for want of|as ever|be it|but for|all the same`)},
	{"receiver, new key, GOAWAY, package comment", words(`newcomers?|farewell|heritage|essays?`)},
	{"retry, retransmit", words(`(sent|sends?|tried|tries|comes?|came) again`)},
	{"release, yield", words(`lets? go of|gives? way|gave way`)},
	{"per connection", words(`(bytes|spans|rows?|goroutines?|locks?|points?|keys) an? (cycle|connection|body|hash|publisher|drainer|turn|process|pod|node)|bytes a span`)},
	{"unavailable, unreachable", words(`(that|which) (is|are|was|were) (away|dead|known|old)`)},
	{"in flight, in progress", words(`under way`)},
	{"timeout, without a hyphen", words(`time-outs?`)},
	{"US spelling", words(`(normal|recogn|organ|initial|serial)is(e[ds]?|ing|ation)|(un)?label(led|ling|lers?)|licences?|(neighb|behavi|hon|col)ours?(ed)?|signalled`)},
	{"so that X closes it, not has X close it", words(`(has|having) (it|them|the [a-z]+|an? [a-z]+) (close|read|look|answer|release|remove|publish|find|make|send|end)`)},
}

func words(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\w'-])(?:` + pattern + `)(?:$|[^\w'-])`)
}
