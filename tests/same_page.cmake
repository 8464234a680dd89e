# Fails unless the output of COMMAND equals the file PAGE; the output stays in MADE.
execute_process(COMMAND ${COMMAND} OUTPUT_FILE ${MADE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND diff -u ${PAGE} ${MADE} RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "${PAGE} is not what ${COMMAND} prints: run `make docs`")
endif()
