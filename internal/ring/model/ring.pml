/*
 * A model of the ring's protocol: two producers, one consumer, and somebody who
 * sends signals. Every access to shared memory is a step of its own, and steps
 * interleave in any order, which is what Go's sequentially consistent atomics
 * promise. The names are those of the Go files beside this folder.
 *
 * What is asserted, in every interleaving:
 *   - a slot that the consumer reads holds what its run's producer wrote there;
 *   - a slot is written only after its content of the lap before was passed;
 *   - a report is delivered behind all that was claimed before it was sent;
 *   - a token is never left behind for a later park;
 *   - nobody is stuck: a lost wake leaves the consumer waiting for a token that
 *     nobody sends, and that is an invalid end state. (A nap's timer may end one
 *     sleep; it can't hide a lost wake, for it may also not.)
 *
 * There are two scenes: CLAIMS has three laps of runs and a stop, REPORT two laps
 * and a report at any moment. Each MUTANT_ macro moves or removes one step. run.sh
 * expects both scenes to pass and each mutant to fail.
 */

#define SIZE      2  /* slots */
#define PRODUCERS 2
#define END       6  /* above all positions */
#define NEVER     255

#ifdef REPORT
#define FIRST 1  /* claims of one producer; the other makes one */
#else
#define FIRST 2
#endif

byte tail, freed, head;       /* cursors */
byte wordAt[SIZE] = NEVER;    /* a word: the run's position (its lap and index), */
byte wordLength[SIZE];        /* its length, */
bool wordSkip[SIZE];          /* and whether it is passed over */
bit parked;
chan token = [1] of { bit };
byte first = NEVER;           /* the lowest bar in the mailbox */
bool stop;                    /* whether the mailbox holds the stop, not the report */

byte slot[SIZE] = NEVER;      /* the position whose content it holds */
bool passed[END];             /* positions that the consumer read or skipped */
byte finished;                /* producers that are done */
byte mustPass;                /* what was claimed when the report was sent */

/* wake of wait.go. A nap is a park that less than everything ends, and its timer
 * is part of how it works, so it is no case of its own. */
inline wake(looked) {
	if
	:: looked ->
		if
		:: atomic { parked == 1 -> parked = 0 }; token!1
		:: else
		fi
	:: else
	fi
}

/* One run: claim and publish of sequence.go, with the filling between them. */
inline produceRun() {
	if :: n = 1 :: n = 2 :: atomic { n = 1; skipped = true } fi;
retry:
	t = tail;
	f = freed;
	if
	:: t + n > f + SIZE ->
		h = head;
		freed = h;
		if
		:: t + n > h + SIZE -> head != h; goto retry  /* Full; it asks again when that may have changed */
		:: else
		fi
	:: else
	fi;
	if
	:: atomic { tail == t -> tail = t + n }
	:: atomic { tail != t -> goto retry }
	fi;
#ifdef MUTANT_LOOK_BEFORE_PUBLISH
	looked = (parked == 1);
#endif
#ifdef MUTANT_PUBLISH_BEFORE_FILL
	atomic { wordAt[t % SIZE] = t; wordLength[t % SIZE] = n; wordSkip[t % SIZE] = skipped };
#endif
	i = 0;
	do
	:: atomic {
		i < n && !skipped ->
		assert(t + i < SIZE || passed[t + i - SIZE]);
		slot[(t + i) % SIZE] = t + i;
		i++
	   }
	:: else -> break
	od;
#ifndef MUTANT_PUBLISH_BEFORE_FILL
	atomic { wordAt[t % SIZE] = t; wordLength[t % SIZE] = n; wordSkip[t % SIZE] = skipped };
#endif
#ifndef MUTANT_LOOK_BEFORE_PUBLISH
	looked = (parked == 1);
#endif
	wake(looked)
}

proctype producer(byte left) {
	byte t, f, h, n, i;
	bool skipped, looked;
	do
	:: left > 0 -> produceRun(); atomic { left--; t = 0; f = 0; h = 0; n = 0; i = 0; skipped = false; looked = false }
	:: else -> break
	od;
	finished++
}

/* Sends a report at any time, and the stop when the producers are done. */
proctype sender() {
	bool looked;
#ifdef REPORT
	byte bar;
	bar = tail;
#ifdef MUTANT_REPORT_WITHOUT_BAR
	first = 0;
#else
	first = bar;
#endif
	mustPass = bar;
	looked = (parked == 1);
	wake(looked);
#endif
	(first == NEVER && finished == PRODUCERS);
	atomic { stop = true; first = tail };
	looked = (parked == 1);
	wake(looked)
}

/* published tells whether a consumer's word is that of its position. */
#ifdef MUTANT_WORD_WITHOUT_LAP
#define published(at) (wordAt[(at) % SIZE] != NEVER)
#else
#define published(at) (wordAt[(at) % SIZE] == (at))
#endif

/* turn of consume.go */
inline takeTurn() {
	next = at;
	do
	:: atomic { published(next) -> n = wordLength[next % SIZE]; skipped = wordSkip[next % SIZE] };
#ifdef MUTANT_FREE_BEFORE_READ
		head = next + n;
#endif
		i = 0;
		do
		:: atomic {
			i < n ->
			assert(skipped || slot[(next + i) % SIZE] == next + i);
			passed[next + i] = true;
			i++
		   }
		:: else -> break
		od;
		next = next + n
	:: else -> break
	od;
	if
	:: next != at -> head = next
	:: else
	fi
}

/* await of wait.go */
inline await() {
#ifdef MUTANT_LOOK_BEFORE_FLAG
	ready = published(at);
	ready = (ready || at >= first);
	assert(empty(token));
	parked = 1;
#else
	assert(empty(token));
	parked = 1;
	ready = published(at);
	ready = (ready || at >= first);
#endif
	if
	:: ready -> unpark()
	:: else ->
		if
		:: token?_
		:: timers > 0 -> timers--; unpark()
		fi
	fi
}

inline unpark() {
	if
	:: atomic { parked == 1 -> parked = 0 }
	:: atomic { parked == 0 -> skip };
#ifndef MUTANT_UNPARK_WITHOUT_TOKEN
		token?_
#endif
	fi
}


proctype consumer() {
	byte at, next, n, i;
	bool skipped, ready;
	byte timers = 1;
	do
	:: at >= first ->
		if
		:: stop -> break
		:: else ->
			assert(mustPass == 0 || passed[mustPass - 1]);
			first = NEVER
		fi
	:: else ->
		takeTurn();
		if
		:: next == at -> await()
		:: else -> at = next
		fi;
		atomic { n = 0; i = 0; skipped = false; ready = false }
	od;
	assert(at == tail && head == tail)
}

init {
	atomic {
		run producer(FIRST);
		run producer(1);
		run sender();
		run consumer()
	}
}
