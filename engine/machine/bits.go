package machine

// The journal holds which fields of a run, a node or an attempt a record changes, as a
// mask of bits. These are the bits. They are persisted: a bit never changes its meaning,
// and a new field gets the next one.

// Bits of the fields of a run: see runFields.
const (
	runStateBit uint64 = 1 << iota
	runDoneBit
	runLiveBit
	runBegunBit
	runFinishedBit
	runOutputsBit
	runIDBit
	runNameBit
	runKeyBit
	runVarsBit
	runTriggerBit
	runStartedByBit
	runWorkflowBit
	runStepsBit
	runOwnerBit
	runStartedBit
	runDeadlineBit
	runPhaseBit
	runPausedBit
	runParkedBit
	runParkedAtBit
	runPassedBit
	runTurningBit
	runCancelBit
	runNoUndoBit
	runOverdueBit
	runFailureBit
	runUndoStartedBit
	runUndoDeadlineBit
	runUndoExpiredBit
	runStuckBit
	runUndonePastBit
	runUndoneBit
	runLeftBit
	runUndeclaredBit
	runHoldsBit
	runRefusedBit
	runPauseBit
	runLostBit
)

// Bits of the fields of a node: see nodeFields.
const (
	nodeStateBit uint64 = 1 << iota
	nodeFwdActBit
	nodeDoubtBit
	nodeDoneBit
	nodeCallsBit
	nodeFwdAttemptBit
	nodeFwdTotalBit
	nodeDepsBit
	nodeFwdKindBit
	nodeFwdReadyBit
	nodeFwdBeganBit
	nodeFwdEndedBit
	nodeInputBit
	nodePreparedBit
	nodeOutputBit
	nodeKnownBit
	nodeFwdDeadlineBit
	nodeFwdUntilBit
	nodeFwdFailuresBit
	nodeFwdFailureBit
	nodeInstanceBit
	nodeNextBit
	nodeActiveBit
	nodeOverBit
	nodeBadBit
	nodePastBit
	nodeUndoBit
	nodeUndActBit
	nodeBackBit
	nodeUndKindBit
	nodeUndAttemptBit
	nodeUndTotalBit
	nodeUndoInputBit
	nodeUndoReadyBit
	nodeUndBeganBit
	nodeUndEndedBit
	nodeUndReadyBit
	nodeUndDeadlineBit
	nodeQuietBit
	nodeQueueBit
	nodeUndUntilBit
	nodeUndFailuresBit
	nodeUndFailureBit
	nodeUndoDoubtBit
	nodeExpansionBit
	nodeFwdRoundsBit
	nodeFwdLookupsBit
	nodeUndLookupsBit
	nodeCaughtBit
	nodeTimedOutBit
	nodeBizKeyBit
	nodeGenBit
	nodeCheckpointBit
	nodeManualBit
	nodeFwdRestBit
	nodeUndRestBit
	nodeClearingBit
	nodeUndoCheckpointBit
	nodeStatedBit
)

// Bits of the fields of an attempt: see attemptFields.
const (
	attemptStatusBit uint64 = 1 << iota
	attemptEndedBit
	attemptKindBit
	attemptNumberBit
	attemptStartedBit
	attemptCompleteByBit
	attemptCodeBit
	attemptMessageBit
	attemptSilentBit
	attemptGenBit
)
